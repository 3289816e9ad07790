import { shortened } from '../../errors.js';
import { type CallRecord, none } from '../../metrics/call-record.js';
import type { RecentRequestView } from '../../metrics/live-state.js';
import type { UnixTime } from '../../metrics/unix-time.js';
import { shownPath } from './access-log.js';

/** How many calls are remembered. */
const length = 100;
/** Characters that are shown of text that clients choose. */
const longestPath = 256;
const longestMethod = 16;

/** Remembers the last calls that have ended at this worker. */
export function createRecentCalls(unixTime: UnixTime) {
  const ring: CallRecord[] = [];
  let next = 0;
  return {
    /** Adds a call that has ended. */
    add(call: CallRecord): void {
      ring[next] = call;
      next = next + 1 === length ? 0 : next + 1;
    },
    /** Lists all remembered calls, newest first. */
    list: (): RecentRequestView[] =>
      [...ring.slice(next), ...ring.slice(0, next)]
        .reverse()
        .map((call) => recentRequestOf(call, unixTime.at(call.endedAt))),
  };
}

function recentRequestOf(call: CallRecord, at: number): RecentRequestView {
  const { usage, firstByteMs, ownMs } = call;
  return {
    id: call.id,
    at,
    method: shortened(call.method, longestMethod),
    path: shownPath(call.path, longestPath),
    protocol: call.protocol,
    model: call.model,
    key: call.keyId,
    target: call.target,
    status: call.status,
    outcome: call.outcome,
    error: call.error,
    durationMs: round(call.durationMs),
    firstByteMs: firstByteMs === none ? null : round(firstByteMs),
    ownMs: ownMs === none ? null : round(ownMs),
    retries: call.retries,
    leftOut: call.leftOut,
    lostInAnswer: call.lostInAnswer,
    inputTokens: usage === null ? 0 : usage.input,
    outputTokens: usage === null ? 0 : usage.output,
  };
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
