import type { HistoryView, LatencyView } from '../admin/live-state.js';
import { counterFamilies, type HistogramName } from './families.js';
import { bucketsOf, eachSeries, isError, latencyOf, sumOf } from './readings.js';
import type { MetricsSnapshot } from './snapshot.js';

/** Milliseconds between two points. */
export const historyStepMs = 5000;
/** Points of an hour. */
export const historyLength = 720;

/** A call that is early by less than this counts as on time, since timers are not exact. */
const earlyMs = historyStepMs / 10;

type Sums = ReturnType<typeof sumsOf>;

/** Creates the history of the last hour in steps of five seconds: `historyLength` points, oldest replaced first. */
export function createHistory() {
  const points: HistoryView[] = [];
  let last: Sums | null = null;

  return {
    /**
     * Records the counts of all workers. The first call only sets the start. A call too early after another is ignored; a
     * late one makes one point of a longer time.
     * @param now Unix milliseconds; if the clock was set back, points in the future are dropped
     * @returns the new point, or null
     */
    add(merged: MetricsSnapshot, now: number): HistoryView | null {
      const before = last;
      if (before !== null && now >= before.at && now - before.at < historyStepMs - earlyMs) return null;
      const sums = sumsOf(merged, now);
      last = sums;
      if (before === null) return null;
      if (now < before.at) {
        while ((points.at(-1)?.at ?? now) > now) points.pop();
        return null;
      }
      const point = pointOf(before, sums, merged);
      if (points.push(point) > historyLength) points.shift();
      return point;
    },
    /** The points, oldest first. */
    points(): HistoryView[] {
      return [...points];
    },
  };
}

function pointOf(before: Sums, now: Sums, { gauges }: MetricsSnapshot): HistoryView {
  const seconds = (now.at - before.at) / 1000;
  return {
    at: now.at,
    seconds,
    requestsPerSecond: (now.requests - before.requests) / seconds,
    errorsPerSecond: (now.errors - before.errors) / seconds,
    inputTokensPerSecond: (now.inputTokens - before.inputTokens) / seconds,
    outputTokensPerSecond: (now.outputTokens - before.outputTokens) / seconds,
    cost: (now.cost - before.cost) / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    firstByte: latencyBetween('gateway_first_byte_seconds', before.firstByte, now.firstByte),
    duration: latencyBetween('gateway_request_duration_seconds', before.duration, now.duration),
    own: latencyBetween('gateway_own_seconds', before.own, now.own),
    openRequests: sumOf(gauges, 'gateway_open_requests'),
    openSockets: sumOf(gauges, 'gateway_open_sockets'),
  };
}

function latencyBetween(name: HistogramName, before: readonly number[], now: readonly number[]): LatencyView {
  return latencyOf(
    name,
    now.map((count, bucket) => count - (before[bucket] as number)),
  );
}

/** Sums of a merged snapshot; the difference of two is a point. */
function sumsOf({ counters, histograms }: MetricsSnapshot, at: number) {
  const sums = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0 };
  eachSeries(counters, 'gateway_requests_total', ([, , status = '', outcome = ''], count) => {
    sums.requests += count;
    if (isError(status, outcome)) sums.errors += count;
  });
  eachSeries(counters, 'gateway_tokens_total', ([, kind], count) => {
    if (kind === 'input') sums.inputTokens += count;
    if (kind === 'output') sums.outputTokens += count;
  });
  return {
    at,
    ...sums,
    /** Nano-dollars. */
    cost: sumOf(counters, 'gateway_cost_usd_total'),
    firstByte: bucketsOf(histograms, 'gateway_first_byte_seconds'),
    duration: bucketsOf(histograms, 'gateway_request_duration_seconds'),
    own: bucketsOf(histograms, 'gateway_own_seconds'),
  };
}
