import { randomBytes } from 'node:crypto';
import type { Model, Target } from '../../config/types.js';
import type { ConversationRules, Keep } from '../../conversation/kept-turns.js';
import { GatewayError, guard } from '../../errors.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import type { WaitingEnd } from '../../stream/answer-transform.js';
import type { AnswerWatch } from '../../stream/observe.js';
import type { ResponseHead } from '../../upstream/types.js';
import type { Events } from '../answer/phase.js';
import { answerId, type Call } from '../call.js';
import { outcomeOf, refuseStream } from '../refuse.js';
import type { Services } from '../services.js';
import { keyMark } from '../upstream/key-mark.js';
import {
  keepOwned,
  noteStoreFault,
  noteStoreWorks,
  renewOwned,
  unavailable,
  writeInBackground,
} from './records.js';

/** Added to ids: call ids are sequential, and users behind one key must not guess what others have kept. */
const secretDigits = 24;
/** Unused random hexadecimal digits, drawn in bulk: random bytes cost as much for one id as for many. */
let secrets = '';
const secretsBytes = 6144;

function newSecret(): string {
  if (secrets.length < secretDigits) secrets = randomBytes(secretsBytes).toString('hex');
  const secret = secrets.slice(0, secretDigits);
  secrets = secrets.slice(secretDigits);
  return secret;
}

/** An attempt at a target that takes the call untranslated. */
export interface NativeAttempt {
  readonly endpoint: Endpoint;
  readonly target: Target;
  /** The upstream key that will be used; null if unknown, or if there is none. */
  readonly apiKey: string | null;
}

/**
 * Whether a target keeps the turns of an endpoint's calls itself: it takes them untranslated, and the config does not say
 * that it ignores references to earlier turns.
 */
export function keepsTurns({ native, translation }: Target, { protocol, conversation }: Endpoint): boolean {
  return native.has(protocol) && (translation.threads || conversation?.withoutTurns === undefined);
}

/** Whether calls of a model can go to more than one account: several targets, or several keys of the only one. */
export function hasSeveralAccounts({ targets }: Model): boolean {
  const [first] = targets;
  return targets.length > 1 || (first !== undefined && first.upstream.apiKeys.length > 1);
}

/** How the turn that an answer ends is kept. */
interface TurnKeeping {
  /** The records that the answer's end has to wait for; null if there are none. */
  readonly keep: Keep | null;
  readonly watch: AnswerWatch | null;
  /** Called with the last bytes of the answer. */
  readonly watchEnd: ((end: Buffer) => void) | null;
  /** Called with all of it. */
  readonly watchAll: ((run: Buffer, isStream: boolean) => void) | null;
}

export const nothingKept: TurnKeeping = { keep: null, watch: null, watchEnd: null, watchAll: null };

/** Whether a call has tools that run at its upstream in something that the upstream keeps. */
export function usesUpstreamState(call: Call, { heldByItems }: ConversationRules): boolean {
  if (heldByItems === undefined) return false;
  const { tools, itemTools } = call.checkedBody();
  const body = call.wholeBody();
  return heldByItems.isUsed(body, tools === null ? null : body.subarray(tools.start, tools.end), itemTools);
}

/**
 * How the turn of an untranslated call is kept: here, or at its target. In the second case the target is recorded as its
 * holder, since later calls could go to another target, the answer can be requested by its id, and no other key may
 * continue from it. Anything else that a target keeps is recorded in either case.
 * @param conversation the endpoint's rules
 */
export function turnKeeping(
  services: Services,
  call: Call,
  { endpoint, target, apiKey }: NativeAttempt,
  conversation: ConversationRules,
): TurnKeeping {
  if (call.running.snapshot.conversations === null) return nothingKept;
  const { upstream, model } = target;
  const holder = () => ({ upstream: upstream.name, model, key: keyMark(apiKey) });
  const { heldAtEnd } = conversation;
  const watchEnd =
    heldAtEnd === null
      ? null
      : (end: Buffer): void => {
          const record = heldAtEnd(end, holder);
          if (record !== null) writeInBackground(services, call, [record]);
        };
  const { heldByItems } = conversation;
  const watchAll =
    heldByItems === undefined || !usesUpstreamState(call, conversation)
      ? null
      : (run: Buffer, isStream: boolean): void =>
          writeInBackground(services, call, heldByItems.records(run, isStream, holder()));
  const beside = { ...nothingKept, watchEnd, watchAll };
  if (!keepsTurns(target, endpoint)) return { ...beside, keep: answerKeep(call, conversation, true) };
  const isOnly = call.model !== null && !hasSeveralAccounts(call.model);
  const held = mayBeKept(call, conversation) ? conversation.hold(call.wholeBody(), holder(), isOnly) : null;
  if (held === null) return beside;
  const { keep, watch } = held;
  if (watch === null) return { ...beside, keep };
  return {
    ...beside,
    keep,
    watch: (piece, isStream) => {
      const records = watch(piece, isStream);
      if (records !== null) writeInBackground(services, call, records);
      return records !== null;
    },
  };
}

/**
 * What to keep of an answer whose upstream keeps nothing; null for nothing. Over a WebSocket only the socket's own
 * history is kept.
 * @param isPassed whether the answer passes untranslated
 */
export function answerKeep(call: Call, conversation: ConversationRules, isPassed: boolean): Keep | null {
  const { recalled, running, socketCall } = call;
  const settings = running.snapshot.conversations;
  if (settings === null || socketCall !== null || !mayBeKept(call, conversation)) return null;
  return conversation.keep({
    body: call.wholeBody(),
    recalled,
    newId: () => answerId(call) + newSecret(),
    isPassed,
    recordBytes: settings.recordBytes,
  });
}

/** Whether the request permits its answer to be continued. */
function mayBeKept(call: Call, { onlyContinuing }: ConversationRules): boolean {
  return !onlyContinuing || call.recalled !== null || call.checkedBody().goesOn;
}

/** Most bytes of a worker's calls in flight to the store, since these are in memory. */
const maxUnderWay = 64 * 1024 * 1024;

/** The end of a whole answer that waits until its turn is kept; null for any other. @param answer is copied */
export function wholeEnd(keep: Keep, { status }: ResponseHead, answer: Buffer | string): WaitingEnd | null {
  if (status >= 300) return null;
  const end = Buffer.from(answer as Buffer);
  const records = keep.records(end, false);
  return records.length === 0 ? null : { keep, records, end, isStream: false, insideEvent: false };
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
  // After a blocked event loop, the store's answer may be waiting. It is read before the immediate runs.
  const late = (): void => finish(false, 'the store took too long');
  const timer = setTimeout(() => setImmediate(late), storeWait.endMs);
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
