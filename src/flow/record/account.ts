import { performance } from 'node:perf_hooks';
import { clientAddress } from '../../http/client-address.js';
import { type CallOutcome, type CallRecord, none, unknownCost } from '../../metrics/call-record.js';
import { targetName } from '../../metrics/recorder.js';
import { settleLater } from '../background/settle.js';
import type { Call } from '../call.js';
import { keepMemory } from '../memory-budget.js';
import type { Services } from '../services.js';
import {
  type Consumption,
  consumedSoFar,
  costOfCall,
  countedCharacters,
  endsLater,
  isMetered,
  noteUnnamed,
  paidForCall,
  wholeSeconds,
  wholeUsage,
} from './consumption.js';

/** The last phase of every call, run exactly once: releases what the call holds, settles its limits and reports it. */
export function account(services: Services, call: Call, outcome: CallOutcome): void {
  if (call.accounted) return;
  call.accounted = true;
  call.outcome = outcome;
  call.endedAt = performance.now();
  services.openCalls.remove(call);
  keepMemory(services, call, 0);
  noteUnnamed(call);
  try {
    if (endsLater(call)) call.limits?.endLater();
    else call.limits?.end(call);
    call.slot?.give();
    // A buffer that was never given to an upstream has no other reader.
    if (call.target === null && call.body !== null) call.exchange.recycleBody();
  } finally {
    call.body = null;
    call.validated = null;
    report(services, call);
  }
}

function report(services: Services, call: Call): void {
  try {
    const record = recordOf(call);
    services.report(record);
    if (call.implausible !== null) services.reportImplausible(call, call.implausible);
    if (record.endsLater) settleLater(services, call, record);
  } catch (fault) {
    services.reportFault('report', fault, call);
  }
}

const noGroups: readonly string[] = [];

/** Makes the record of an ended call. `Services.report` gets nothing else of the call. */
export function recordOf(call: Call): CallRecord {
  const record = describe(call, call, call.outcome, call.endedAt);
  if (!endsLater(call)) return record;
  return { ...record, usage: null, units: 0, costNanoUsd: 0, paidNanoUsd: unknownCost, endsLater: true };
}

/** Makes the record for a call in flight that is stored in case its process is killed. */
export function recordSoFar(call: Call): CallRecord {
  return describe(call, consumedSoFar(call), 'interrupted', performance.now());
}

function describe(call: Call, used: Consumption, outcome: CallOutcome, endedAt: number): CallRecord {
  const { exchange, key, route, model, target, error, startedAt, sentAt, answeredAt, retries } = call;
  const leftAt = call.leftAt > 0 ? call.leftAt : endedAt;
  return {
    id: exchange.id,
    number: exchange.number,
    method: exchange.method,
    path: exchange.path,
    client: clientOf(call),
    keyId: key === null ? null : key.id,
    groups: key === null ? noGroups : key.groups,
    protocol: route === null ? null : route.protocol,
    model: model === null ? null : model.name,
    target: target === null ? null : targetName(target),
    status: exchange.status,
    outcome,
    error: error === null ? null : error.kind,
    cause: causeOf(call),
    usage: wholeUsage(used),
    givenUp: call.givenUp,
    otherAttempts: call.otherAttempts === null ? null : [...call.otherAttempts.values()],
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    mediaSeconds: used.isServed ? wholeSeconds(used) : 0,
    characters: countedCharacters(used),
    leftOut: call.leftOut,
    lostInAnswer: call.lostInAnswer,
    retries,
    units: used.isServed ? used.units : 0,
    costNanoUsd: costOfCall(used),
    paidNanoUsd: paidForCall(used) ?? unknownCost,
    isMetered: isMetered(call),
    endsLater: false,
    endedAt,
    durationMs: leftAt - startedAt,
    firstByteMs: answeredAt > 0 ? answeredAt - startedAt : none,
    ownMs: sentAt > 0 && retries === 0 ? sentAt - startedAt : none,
  };
}

/** An upstream's words about the gateway's account may quote its key. `refusalLine` logs them masked. */
function causeOf({ error }: Call): string | null {
  if (error === null) return null;
  if (error.vendorAccountStatus !== null) return `status ${error.vendorAccountStatus}`;
  return typeof error.cause === 'string' ? error.cause : null;
}

function clientOf({ exchange, running }: Call): string | null {
  const { peer, forwardedFor } = exchange.head;
  if (peer === null || running.proxies === null) return null;
  return clientAddress(peer, forwardedFor, running.proxies);
}

/** How many records wait in a queue at most. */
const mostRecords = 32;

/**
 * Queues call records that are recorded together. Between requests, each one would find the code and data of that work
 * evicted from the processor's caches. For many in a row they are loaded once.
 */
export class RecordQueue {
  readonly #note: (call: CallRecord) => void;
  readonly #onFault: (fault: unknown, call: CallRecord) => void;
  #calls: CallRecord[] = [];

  /**
   * @param note records a call
   * @param onFault called with what `note` throws; the calls behind it are still recorded
   */
  constructor(note: (call: CallRecord) => void, onFault: (fault: unknown, call: CallRecord) => void) {
    this.#note = note;
    this.#onFault = onFault;
  }

  /** Adds a call to be recorded soon. The order is kept. */
  add(call: CallRecord): void {
    if (this.#calls.push(call) === mostRecords) this.flush();
  }

  /** Records all waiting calls now. */
  flush(): void {
    const calls = this.#calls;
    this.#calls = [];
    for (const call of calls) {
      try {
        this.#note(call);
      } catch (fault) {
        this.#onFault(fault, call);
      }
    }
  }
}
