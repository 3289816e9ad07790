import type { CollectedMetrics, HistogramRows, NumberRows } from './collected.js';
import {
  type CounterName,
  counterFamilies,
  type GaugeName,
  type HistogramName,
  histogramFamilies,
} from './families.js';
import type { HistoryView, LatencyView } from './live-state.js';
import { percentile } from './tables.js';

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
    add(merged: CollectedMetrics, now: number): HistoryView | null {
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

function pointOf(before: Sums, now: Sums, { gauges }: CollectedMetrics): HistoryView {
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

/** Sums of merged metrics; the difference of two is a point. */
function sumsOf({ counters, histograms }: CollectedMetrics, at: number) {
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

/** Calls `visit` with the label values and the number of every series of a family. */
export function eachSeries(
  rows: readonly NumberRows[],
  name: CounterName | GaugeName,
  visit: (labels: readonly string[], value: number) => void,
): void {
  const [, labels = [], values = []] = rows.find(([family]) => family === name) ?? [];
  const width = labels.length / values.length;
  for (const [row, value] of values.entries()) visit(labels.slice(row * width, (row + 1) * width), value);
}

/** The sum of a family. */
export function sumOf(rows: readonly NumberRows[], name: CounterName | GaugeName): number {
  let sum = 0;
  eachSeries(rows, name, (_labels, value) => {
    sum += value;
  });
  return sum;
}

/** Calls `visit` with the label values and the counts of all buckets of every series of a family. */
export function eachHistogram(
  rows: readonly HistogramRows[],
  name: HistogramName,
  visit: (labels: readonly string[], counts: readonly number[]) => void,
): void {
  const [, labels = [], counts = [], sums = []] = rows.find(([family]) => family === name) ?? [];
  const width = labels.length / sums.length;
  const buckets = histogramFamilies[name].bounds.length + 1;
  for (let row = 0; row < sums.length; row++) {
    visit(labels.slice(row * width, (row + 1) * width), counts.slice(row * buckets, (row + 1) * buckets));
  }
}

/** Zero counts for the buckets of a family. */
export function emptyBuckets(name: HistogramName): number[] {
  return new Array<number>(histogramFamilies[name].bounds.length + 1).fill(0);
}

/** Adds the counts of another series of the same family. */
export function addBuckets(sum: number[], counts: readonly number[]): void {
  for (const [bucket, count] of counts.entries()) (sum[bucket] as number) += count;
}

/** The counts of all series of a family together. */
export function bucketsOf(rows: readonly HistogramRows[], name: HistogramName): number[] {
  const sum = emptyBuckets(name);
  eachHistogram(rows, name, (_labels, counts) => addBuckets(sum, counts));
  return sum;
}

/** The latency view of a family's bucket counts. */
export function latencyOf(name: HistogramName, counts: readonly number[]): LatencyView {
  const { bounds } = histogramFamilies[name];
  return {
    p50: percentile(bounds, counts, 0.5),
    p95: percentile(bounds, counts, 0.95),
    p99: percentile(bounds, counts, 0.99),
  };
}

/**
 * Whether a request counts as an error. A request that was refused after a success status is a stream that the gateway
 * itself broke off.
 * @param status value of the label
 */
export function isError(status: string, outcome: string): boolean {
  if (status.startsWith('5') || outcome === 'upstream_error' || outcome === 'interrupted') return true;
  return outcome === 'refused' && status.startsWith('2');
}
