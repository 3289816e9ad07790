import type { RecentRequestView } from '../admin/live-state.js';
import { targetName } from '../metrics/target-name.js';
import type { UnixTime } from '../metrics/unix-time.js';
import { firstByteMs, none, ownMs } from '../usage/ended-call.js';
import type { Call } from './call.js';

/** Calls that are remembered. */
const length = 100;
/** Characters that are kept of what a client is free to choose. */
const longestPath = 256;
const longestMethod = 16;

/** A remembered call: its record is written over when the ring has come round. */
interface RecentCall {
  id: string;
  method: string;
  path: string;
  protocol: string | null;
  model: string | null;
  key: string | null;
  target: string | null;
  status: number;
  outcome: string;
  error: string | null;
  /** Milliseconds of `performance.now()`. */
  endedAt: number;
  durationMs: number;
  firstByteMs: number;
  ownMs: number;
  retries: number;
  inputTokens: number;
  outputTokens: number;
}

/** The last calls that have ended at this worker. */
export interface RecentCalls {
  /** Takes note of a call that has ended; keeps nothing of the call but words and numbers, and allocates nothing. */
  add(call: Call): void;
  /** All that are remembered, newest first. */
  list(): RecentRequestView[];
}

export function createRecentCalls(unixTime: UnixTime): RecentCalls {
  const ring = Array.from({ length }, emptyRecord);
  let next = 0;
  let count = 0;
  return {
    add(call) {
      write(ring[next] as RecentCall, call);
      next = next + 1 === length ? 0 : next + 1;
      if (count < length) count++;
    },
    list: () =>
      Array.from({ length: count }, (_, age) => {
        const record = ring[(next - 1 - age + length) % length] as RecentCall;
        return viewOf(record, unixTime.at(record.endedAt));
      }),
  };
}

function write(record: RecentCall, call: Call): void {
  const { exchange, target, usage, startedAt, endedAt } = call;
  record.id = exchange.id;
  record.method = kept(exchange.method, longestMethod);
  record.path = kept(exchange.path, longestPath);
  record.protocol = call.route === null ? null : call.route.protocol;
  record.model = call.model === null ? null : call.model.name;
  record.key = call.key === null ? null : call.key.id;
  record.target = target === null ? null : targetName(target);
  record.status = exchange.status;
  record.outcome = call.outcome;
  record.error = call.error === null ? null : call.error.kind;
  record.endedAt = endedAt;
  record.durationMs = endedAt - startedAt;
  record.firstByteMs = firstByteMs(call);
  record.ownMs = ownMs(call);
  record.retries = call.retries;
  record.inputTokens = usage === null ? 0 : usage.input;
  record.outputTokens = usage === null ? 0 : usage.output;
}

function viewOf(record: Readonly<RecentCall>, at: number): RecentRequestView {
  const { firstByteMs, ownMs } = record;
  return {
    id: record.id,
    at,
    method: record.method,
    // The query is no part of it, unless a client has encoded its question mark.
    path: record.path.replace(/key=[^&]*/gi, 'key=…'),
    protocol: record.protocol,
    model: record.model,
    key: record.key,
    target: record.target,
    status: record.status,
    outcome: record.outcome,
    error: record.error,
    durationMs: round(record.durationMs),
    firstByteMs: firstByteMs === none ? null : round(firstByteMs),
    ownMs: ownMs === none ? null : round(ownMs),
    retries: record.retries,
    inputTokens: record.inputTokens,
    outputTokens: record.outputTokens,
  };
}

/** Its times begin as fractions, so that the engine never has to give the record another shape. */
function emptyRecord(): RecentCall {
  return {
    id: '',
    method: '',
    path: '',
    protocol: null,
    model: null,
    key: null,
    target: null,
    status: 0,
    outcome: '',
    error: null,
    endedAt: 0.5,
    durationMs: 0.5,
    firstByteMs: 0.5,
    ownMs: 0.5,
    retries: 0,
    inputTokens: 0,
    outputTokens: 0,
  };
}

/** A copy where it is cut: a part of a long text would keep the whole of it in memory. */
function kept(text: string, longest: number): string {
  return text.length <= longest ? text : `${Buffer.from(text.slice(0, longest)).toString()}…`;
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
