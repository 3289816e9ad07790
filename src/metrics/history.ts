import {
  type CounterName,
  counterFamilies,
  type GaugeName,
  type HistogramName,
  histogramFamilies,
} from './families.js';
import { percentile } from './histogram.js';
import type { MetricsSnapshot, NumberRows } from './snapshot.js';

/** Milliseconds between two points. */
export const historyStepMs = 5000;
/** Points of an hour. */
export const historyLength = 720;

/** A call that comes so much too early is on time: timers are never quite even. */
const earlyMs = historyStepMs / 10;

/** Estimates in seconds; null where nothing was counted. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** What happened between two moments. */
export interface HistoryPoint {
  /** Unix milliseconds: the later moment. */
  readonly at: number;
  /** Between the two. */
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Requests that were answered with a status of 500 and above, or failed at the upstream afterwards. */
  readonly errorsPerSecond: number;
  /** Input and output. */
  readonly tokensPerSecond: number;
  /** USD, in the whole time of the point. */
  readonly cost: number;
  readonly firstByte: Percentiles;
  readonly duration: Percentiles;
  /** At the later moment. */
  readonly openRequests: number;
  readonly openSockets: number;
}

/** The last hour, in steps of five seconds. */
export interface History {
  /**
   * Takes note of what all workers have counted until now. The first call only sets the beginning, and one that comes
   * too early after another is passed over; one that comes late makes one point of a longer time.
   * @param now Unix milliseconds; where the clock was set back, points of the time to come are forgotten
   */
  add(merged: MetricsSnapshot, now: number): void;
  /** Points after a moment in Unix milliseconds, the oldest first. */
  points(since: number): HistoryPoint[];
}

/** Sums of a merged snapshot, of which two make a point. */
interface Sums {
  readonly at: number;
  readonly requests: number;
  readonly errors: number;
  readonly tokens: number;
  readonly cost: number;
  readonly firstByte: readonly number[];
  readonly duration: readonly number[];
}

/** Remembers `historyLength` points, and forgets the oldest for each new one. */
export function createHistory(): History {
  const ring = new Array<HistoryPoint | null>(historyLength).fill(null);
  /** Where the next point goes, and how many there are. */
  let next = 0;
  let count = 0;
  let last: Sums | null = null;
  const pointAt = (age: number): HistoryPoint =>
    ring[(next - 1 - age + historyLength) % historyLength] as HistoryPoint;

  const forgetAfter = (now: number): void => {
    while (count > 0 && pointAt(0).at > now) {
      next = (next - 1 + historyLength) % historyLength;
      ring[next] = null;
      count--;
    }
  };

  return {
    add(merged, now) {
      const before = last;
      if (before !== null && now >= before.at && now - before.at < historyStepMs - earlyMs) return;
      const sums = sumsOf(merged, now);
      last = sums;
      if (before === null) return;
      if (now < before.at) {
        forgetAfter(now);
        return;
      }
      ring[next] = pointOf(before, sums, merged);
      next = (next + 1) % historyLength;
      count = Math.min(count + 1, historyLength);
    },
    points(since) {
      const found: HistoryPoint[] = [];
      for (let age = 0; age < count && pointAt(age).at > since; age++) found.push(pointAt(age));
      return found.reverse();
    },
  };
}

function pointOf(before: Sums, now: Sums, merged: MetricsSnapshot): HistoryPoint {
  const seconds = (now.at - before.at) / 1000;
  return {
    at: now.at,
    seconds,
    requestsPerSecond: (now.requests - before.requests) / seconds,
    errorsPerSecond: (now.errors - before.errors) / seconds,
    tokensPerSecond: (now.tokens - before.tokens) / seconds,
    cost: (now.cost - before.cost) / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    firstByte: percentilesOf('gateway_first_byte_seconds', before.firstByte, now.firstByte),
    duration: percentilesOf('gateway_request_duration_seconds', before.duration, now.duration),
    openRequests: sumOf(merged.gauges, 'gateway_open_requests'),
    openSockets: sumOf(merged.gauges, 'gateway_open_sockets'),
  };
}

function percentilesOf(name: HistogramName, before: readonly number[], now: readonly number[]): Percentiles {
  const { bounds } = histogramFamilies[name];
  const counts = now.map((count, bucket) => count - (before[bucket] as number));
  return {
    p50: percentile(bounds, counts, 0.5),
    p95: percentile(bounds, counts, 0.95),
    p99: percentile(bounds, counts, 0.99),
  };
}

function sumsOf({ counters, histograms }: MetricsSnapshot, at: number): Sums {
  const buckets = (name: HistogramName): number[] => {
    const { length } = histogramFamilies[name].bounds;
    const all = new Array<number>(length + 1).fill(0);
    const [, , counts = []] = histograms.find(([family]) => family === name) ?? [];
    for (const [i, count] of counts.entries()) (all[i % all.length] as number) += count;
    return all;
  };
  return {
    at,
    requests: sumOf(counters, 'gateway_requests_total'),
    errors: sumOf(counters, 'gateway_requests_total', isError),
    tokens: sumOf(counters, 'gateway_tokens_total', isConsumed),
    cost: sumOf(counters, 'gateway_cost_usd_total'),
    firstByte: buckets('gateway_first_byte_seconds'),
    duration: buckets('gateway_request_duration_seconds'),
  };
}

/** The sum of the series of a family whose label values are of a kind. */
function sumOf(
  all: readonly NumberRows[],
  name: CounterName | GaugeName,
  counts: (labels: readonly string[]) => boolean = () => true,
): number {
  const [, labels = [], values = []] = all.find(([family]) => family === name) ?? [];
  const width = labels.length / values.length;
  return values.reduce(
    (sum, value, row) => (counts(labels.slice(row * width, (row + 1) * width)) ? sum + value : sum),
    0,
  );
}

function isError([, , status = '', outcome]: readonly string[]): boolean {
  return status.startsWith('5') || outcome === 'upstream_error';
}

function isConsumed([, kind]: readonly string[]): boolean {
  return kind === 'input' || kind === 'output';
}
