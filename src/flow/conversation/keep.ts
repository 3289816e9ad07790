import type { Keep } from '../../conversation/kept-turns.js';
import { GatewayError, guard } from '../../errors.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import type { WaitingEnd } from '../../stream/answer-transform.js';
import type { ResponseHead } from '../../upstream/types.js';
import type { Events } from '../answer/phase.js';
import type { Call } from '../call.js';
import { outcomeOf, refuseStream } from '../refuse.js';
import type { Services } from '../services.js';
import { keepOwned, noteStoreFault, noteStoreWorks, renewOwned } from './records.js';

/** Most bytes of a worker's calls in flight to the store, since these are in memory. */
const maxUnderWay = 64 * 1024 * 1024;

/** The end of a whole answer that waits until its turn is kept; null for any other. @param answer is copied */
export function wholeEnd(keep: Keep, { status }: ResponseHead, answer: Buffer | string): WaitingEnd | null {
  if (status >= 300) return null;
  const end = Buffer.from(answer as Buffer);
  const records = keep.records(end, false);
  return records.length === 0 ? null : { keep, records, end, isStream: false };
}

/**
 * Ends a complete stream.
 * @param result its last events, or the error that replaces them
 * @param end the waiting end
 * @returns the outcome of its call
 */
export function sendStreamEnd(call: Call, result: Buffer | GatewayError, { end }: WaitingEnd): CallOutcome {
  if (result instanceof GatewayError) {
    // The error takes the number of the event that was held back.
    const number = call.route?.endpoint?.lastNumber?.(end) ?? 0;
    refuseStream(call, result, { number, insideEvent: false, words: () => null });
    return outcomeOf(result);
  }
  call.exchange.write(result);
  call.exchange.end();
  return 'complete';
}

/** Appends what follows a waiting end of an upstream's stream, such as an end mark that clients may look for. */
export function appendAfterEnd({ transform, runs }: Events, chunk: Buffer): void {
  const run = runs.push(chunk);
  if (run !== null && !runs.overlong) transform.pass(run);
}

/**
 * Keeps the records that the end of an answer depends on.
 * @param done called once, later, with the end to send or the error that replaces it, unless the call is over by then
 */
export function keepEnd(
  services: Services,
  call: Call,
  waitingEnd: WaitingEnd,
  done: (result: Buffer | GatewayError) => void,
): void {
  const { owned, keeping, storeWait } = services;
  const { keep, records, isStream } = waitingEnd;
  const settings = call.running.snapshot.conversations;
  let isOver = false;
  const finish = guard('promise', call, (isKept: boolean, fault: unknown): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    if (fault !== null) noteStoreFault(services, fault);
    if (call.accounted) return;
    if (isKept) done(waitingEnd.end);
    else if (keep.isAsked && fault !== null) done(unavailable(fault));
    else done(keep.unkept(waitingEnd.end, isStream));
  });
  const timer = setTimeout(() => finish(false, 'the store took too long'), storeWait.endMs);
  const bytes = records.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
  if (owned === null || settings === null || call.key === null || bytes > settings.recordBytes) {
    setImmediate(finish, false, null);
    return;
  }
  if (keeping.underWay + bytes > maxUnderWay) {
    setImmediate(finish, false, 'too much is on its way to the store');
    return;
  }
  keeping.underWay += bytes;
  // Renewed before the turn's records are added, so that these do not evict them.
  const renewed = keep.needed.length === 0 ? null : renewOwned(owned, call.key, keep.needed, settings);
  Promise.all([keepOwned(owned, call.key, records, settings), renewed]).then(
    ([isKept]) => {
      keeping.underWay -= bytes;
      noteStoreWorks(services);
      finish(isKept, null);
    },
    (fault: unknown) => {
      keeping.underWay -= bytes;
      finish(false, fault);
    },
  );
}

function unavailable(fault: unknown): GatewayError {
  if (fault instanceof GatewayError) return fault;
  return new GatewayError('store_unavailable', null, { retryAfter: 1, cause: fault });
}
