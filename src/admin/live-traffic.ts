import { counterFamilies } from '../metrics/families.js';
import {
  addBuckets,
  eachHistogram,
  eachSeries,
  emptyBuckets,
  isError,
  latencyOf,
} from '../metrics/readings.js';
import type { MetricsSnapshot, NumberRows } from '../metrics/snapshot.js';
import { entryOf, most } from './live-lists.js';
import type { Counts, KeyTrafficView, ModelView, ProtocolView, TokenView } from './live-state.js';

/** A series of the requests. */
export interface RequestCount {
  readonly protocol: string;
  readonly model: string;
  readonly count: number;
  readonly isError: boolean;
  readonly isRefusal: boolean;
}

/** All requests that have ended, by what is told of them. */
export function requestCounts({ counters }: MetricsSnapshot): RequestCount[] {
  const counts: RequestCount[] = [];
  eachSeries(
    counters,
    'gateway_requests_total',
    ([protocol = '', model = '', status = '', outcome = ''], count) =>
      counts.push({
        protocol,
        model,
        count,
        isError: isError(status, outcome),
        isRefusal: status.startsWith('4'),
      }),
  );
  return counts;
}

/** What they come to together. */
export function countsOf(requests: readonly RequestCount[]): Counts {
  const counts = { requests: 0, errors: 0, refusals: 0 };
  for (const request of requests) {
    counts.requests += request.count;
    if (request.isError) counts.errors += request.count;
    if (request.isRefusal) counts.refusals += request.count;
  }
  return counts;
}

/** The tokens of all models. */
export function tokensOf(counters: readonly NumberRows[]): TokenView {
  return tokensBy(counters, () => '').get('') ?? noTokens;
}

const noTokens: TokenView = { input: 0, output: 0, cached: 0, reasoning: 0 };

function tokensBy(
  counters: readonly NumberRows[],
  nameOf: (model: string) => string,
): Map<string, TokenView> {
  const all = new Map<string, { -readonly [Kind in keyof TokenView]: number }>();
  eachSeries(counters, 'gateway_tokens_total', ([model = '', kind = ''], count) => {
    const tokens = entryOf(all, nameOf(model), () => ({ ...noTokens }));
    if (kind === 'input' || kind === 'output' || kind === 'cached' || kind === 'reasoning')
      tokens[kind] += count;
  });
  return all;
}

/** Models that were asked for, the busiest first; one of them stands for the requests without a model. */
export function modelViews(
  { counters, histograms }: MetricsSnapshot,
  requests: readonly RequestCount[],
): ModelView[] {
  const tokens = tokensBy(counters, (model) => model);
  const nanos = new Map<string, number>();
  eachSeries(counters, 'gateway_cost_usd_total', ([model = ''], count) => nanos.set(model, count));
  const firstBytes = new Map<string, number[]>();
  eachHistogram(histograms, 'gateway_first_byte_seconds', ([, model = ''], counts) =>
    addBuckets(
      entryOf(firstBytes, model, () => emptyBuckets('gateway_first_byte_seconds')),
      counts,
    ),
  );
  return busiest(requests, ({ model }) => model).map(([name, counts]) => ({
    name,
    ...counts,
    tokens: tokens.get(name) ?? noTokens,
    costUsd: (nanos.get(name) ?? 0) / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    firstByte: latencyOf('gateway_first_byte_seconds', firstBytes.get(name) ?? []),
  }));
}

/** Protocols that were spoken, the busiest first. */
export function protocolViews(
  { histograms }: MetricsSnapshot,
  requests: readonly RequestCount[],
): ProtocolView[] {
  const durations = new Map<string, readonly number[]>();
  eachHistogram(histograms, 'gateway_request_duration_seconds', ([protocol = ''], counts) =>
    durations.set(protocol, counts),
  );
  return busiest(requests, ({ protocol }) => protocol).map(([name, counts]) => ({
    name,
    ...counts,
    duration: latencyOf('gateway_request_duration_seconds', durations.get(name) ?? []),
  }));
}

/** The counts of each name's requests, the busiest first. */
function busiest(
  requests: readonly RequestCount[],
  nameOf: (request: RequestCount) => string,
): [name: string, counts: Counts][] {
  const byName = new Map<string, RequestCount[]>();
  for (const request of requests) entryOf(byName, nameOf(request), () => []).push(request);
  return most(
    Array.from(byName, ([name, own]): [string, Counts] => [name, countsOf(own)]),
    ([, counts]) => counts.requests,
    ([name]) => name,
  );
}

/** Keys that have called, the busiest first. */
export function keyViews({ counters }: MetricsSnapshot): KeyTrafficView[] {
  const keys = new Map<string, { requests: number; errors: number; refusals: number }>();
  eachSeries(counters, 'gateway_key_requests_total', ([key = '', statusClass], count) => {
    const counts = entryOf(keys, key, () => ({ requests: 0, errors: 0, refusals: 0 }));
    counts.requests += count;
    if (statusClass === '5xx') counts.errors += count;
    if (statusClass === '4xx') counts.refusals += count;
  });
  return most(
    Array.from(keys, ([name, counts]) => ({ name, ...counts })),
    ({ requests }) => requests,
    ({ name }) => name,
  );
}
