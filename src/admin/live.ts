import type { CollectedMetrics, NumberRows } from '../metrics/collected.js';
import { counterFamilies } from '../metrics/families.js';
import { targetStates } from '../metrics/gauges.js';
import {
  addBuckets,
  bucketsOf,
  eachHistogram,
  eachSeries,
  emptyBuckets,
  isError,
  latencyOf,
  sumOf,
} from '../metrics/history.js';
import type { InspectedTarget, Inspection } from '../metrics/inspection.js';
import type {
  Counts,
  FailureView,
  GatewayView,
  KeyTrafficView,
  LiveState,
  ModelView,
  MomentView,
  ProtocolView,
  RecentRequestView,
  TargetStateView,
  TargetView,
  TokenView,
} from '../metrics/live-state.js';
import { type Steps, sortSteps } from '../wire/steps.js';

/** Most requests shown. */
const mostRequests = 100;

/** Input of the live state. */
interface LiveParts {
  /** Unix milliseconds. */
  readonly at: number;
  readonly gateway: GatewayView;
  /** Metrics of all workers. */
  readonly merged: CollectedMetrics;
  /** Inspections of the workers that answered. */
  readonly inspections: readonly Inspection[];
}

/**
 * Builds the gateway's current state for the console. Its counts are those of `/metrics` at the same moment. With
 * thousands of series this takes several milliseconds.
 */
export function* liveStateSteps({ at, gateway, merged, inspections }: LiveParts): Steps<LiveState> {
  const requests = requestCounts(merged);
  yield;
  const totals = totalsOf(merged, requests);
  yield;
  const models = yield* modelViews(merged, requests);
  yield;
  const protocols = yield* protocolViews(merged, requests);
  yield;
  const keys = yield* keyViews(merged);
  yield;
  const targets = yield* targetViews(merged, inspections);
  return {
    at,
    gateway,
    now: momentOf(merged),
    totals,
    models,
    protocols,
    keys,
    targets,
    requests: newest(inspections.flatMap((inspection) => inspection.requests)),
  };
}

function totalsOf(
  { counters, histograms }: CollectedMetrics,
  requests: readonly RequestCount[],
): LiveState['totals'] {
  const limitRefusals: [string, number][] = [];
  eachSeries(counters, 'gateway_limit_refusals_total', ([limit = ''], count) =>
    limitRefusals.push([limit, count]),
  );
  return {
    ...countsOf(requests),
    tokens: tokensOf(counters),
    costUsd: sumOf(counters, 'gateway_cost_usd_total') / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    bytesIn: sumOf(counters, 'gateway_request_bytes_total'),
    bytesOut: sumOf(counters, 'gateway_response_bytes_total'),
    limitRefusals: Object.fromEntries(limitRefusals),
    firstByte: latencyOf('gateway_first_byte_seconds', bucketsOf(histograms, 'gateway_first_byte_seconds')),
    duration: latencyOf(
      'gateway_request_duration_seconds',
      bucketsOf(histograms, 'gateway_request_duration_seconds'),
    ),
    own: latencyOf('gateway_own_seconds', bucketsOf(histograms, 'gateway_own_seconds')),
  };
}

function momentOf({ gauges }: CollectedMetrics): MomentView {
  const loopDelay = { p50: 0, p99: 0, max: 0 };
  eachSeries(gauges, 'gateway_event_loop_delay_seconds', ([stat = ''], seconds) => {
    if (stat === 'p50' || stat === 'p99' || stat === 'max') loopDelay[stat] = seconds;
  });
  return {
    openRequests: sumOf(gauges, 'gateway_open_requests'),
    openSockets: sumOf(gauges, 'gateway_open_sockets'),
    upstreamConnections: {
      open: sumOf(gauges, 'gateway_upstream_connections_open'),
      busy: sumOf(gauges, 'gateway_upstream_connections_busy'),
      waiting: sumOf(gauges, 'gateway_upstream_requests_waiting'),
    },
    bufferedBytes: sumOf(gauges, 'gateway_buffered_bytes'),
    ledgerWaiting: sumOf(gauges, 'gateway_ledger_waiting_entries'),
    residentBytes: sumOf(gauges, 'gateway_resident_memory_bytes'),
    loopDelay,
  };
}

function newest(requests: RecentRequestView[]): RecentRequestView[] {
  return requests.sort((a, b) => b.at - a.at).slice(0, mostRequests);
}

interface TargetSums {
  attempts: number;
  readonly failures: Map<string, number>;
  retries: number;
  inFlight: number;
  /** State reported by each worker that knows the target. */
  readonly inspected: InspectedTarget[];
}

/** Lists targets that workers know, and those that were counted before a reload removed them, the busiest first. */
function* targetViews(
  { counters, gauges }: CollectedMetrics,
  inspections: readonly Inspection[],
): Steps<TargetView[]> {
  const targets = new Map<string, TargetSums>();
  const at = (name: string): TargetSums =>
    entryOf(targets, name, () => ({
      attempts: 0,
      failures: new Map(),
      retries: 0,
      inFlight: 0,
      inspected: [],
    }));
  eachSeries(counters, 'gateway_upstream_attempts_total', ([target = '', result = ''], count) => {
    const sums = at(target);
    sums.attempts += count;
    if (result !== 'ok') sums.failures.set(result, count);
  });
  eachSeries(counters, 'gateway_retries_total', ([target = ''], count) => {
    at(target).retries += count;
  });
  eachSeries(gauges, 'gateway_target_in_flight', ([target = ''], count) => {
    at(target).inFlight += count;
  });
  yield;
  for (const inspection of inspections) {
    for (const target of inspection.targets) at(target.name).inspected.push(target);
    yield;
  }
  const views = Array.from(targets, ([name, { failures, inspected, ...counts }]): TargetView => {
    const state = worst(inspected);
    return {
      name,
      state,
      workersInState: inspected.filter((target) => target.state === state).length,
      ...counts,
      failures: Object.fromEntries(failures),
      lastFailure: latest(inspected),
    };
  });
  yield;
  return yield* most(
    views,
    ({ attempts }) => attempts,
    ({ name }) => name,
  );
}

/** Ordered from healthy to failing. A half-open breaker permits probes, so it ranks before an open one. */
const severity: Readonly<Record<TargetStateView, number>> = {
  closed: 0,
  cooling: 1,
  'half-open': 2,
  open: 3,
};

function worst(inspected: readonly InspectedTarget[]): TargetStateView {
  let state: TargetStateView = targetStates[0];
  for (const target of inspected) if (severity[target.state] > severity[state]) state = target.state;
  return state;
}

function latest(inspected: readonly InspectedTarget[]): FailureView | null {
  let last: FailureView | null = null;
  for (const { lastFailure } of inspected) {
    if (lastFailure !== null && (last === null || lastFailure.at > last.at)) last = lastFailure;
  }
  return last;
}

/** A series of the request counter. */
interface RequestCount {
  readonly protocol: string;
  readonly model: string;
  readonly count: number;
  readonly isError: boolean;
  readonly isRefusal: boolean;
}

/** Reads the counts of finished requests, by their labels. */
function requestCounts({ counters }: CollectedMetrics): RequestCount[] {
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

/** Adds up requests, errors and refusals. */
function countsOf(requests: readonly RequestCount[]): Counts {
  const counts = { requests: 0, errors: 0, refusals: 0 };
  for (const request of requests) {
    counts.requests += request.count;
    if (request.isError) counts.errors += request.count;
    if (request.isRefusal) counts.refusals += request.count;
  }
  return counts;
}

/** Adds up the tokens of all models. */
function tokensOf(counters: readonly NumberRows[]): TokenView {
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

/** Lists requested models, the busiest first. One entry stands for requests without a model. */
function* modelViews(
  { counters, histograms }: CollectedMetrics,
  requests: readonly RequestCount[],
): Steps<ModelView[]> {
  const tokens = tokensBy(counters, (model) => model);
  yield;
  const nanos = new Map<string, number>();
  eachSeries(counters, 'gateway_cost_usd_total', ([model = ''], count) => nanos.set(model, count));
  const firstBytes = new Map<string, number[]>();
  eachHistogram(histograms, 'gateway_first_byte_seconds', ([, model = ''], counts) =>
    addBuckets(
      entryOf(firstBytes, model, () => emptyBuckets('gateway_first_byte_seconds')),
      counts,
    ),
  );
  yield;
  const models = yield* busiest(requests, ({ model }) => model);
  return models.map(([name, counts]) => ({
    name,
    ...counts,
    tokens: tokens.get(name) ?? noTokens,
    costUsd: (nanos.get(name) ?? 0) / counterFamilies.gateway_cost_usd_total.unitsPerOne,
    firstByte: latencyOf('gateway_first_byte_seconds', firstBytes.get(name) ?? []),
  }));
}

/** Lists used protocols, the busiest first. */
function* protocolViews(
  { histograms }: CollectedMetrics,
  requests: readonly RequestCount[],
): Steps<ProtocolView[]> {
  const durations = new Map<string, readonly number[]>();
  eachHistogram(histograms, 'gateway_request_duration_seconds', ([protocol = ''], counts) =>
    durations.set(protocol, counts),
  );
  const protocols = yield* busiest(requests, ({ protocol }) => protocol);
  return protocols.map(([name, counts]) => ({
    name,
    ...counts,
    duration: latencyOf('gateway_request_duration_seconds', durations.get(name) ?? []),
  }));
}

/** Counts the requests of each name, the busiest first. */
function* busiest(
  requests: readonly RequestCount[],
  nameOf: (request: RequestCount) => string,
): Steps<[name: string, counts: Counts][]> {
  const byName = new Map<string, RequestCount[]>();
  for (const request of requests) entryOf(byName, nameOf(request), () => []).push(request);
  yield;
  return yield* most(
    Array.from(byName, ([name, own]): [string, Counts] => [name, countsOf(own)]),
    ([, counts]) => counts.requests,
    ([name]) => name,
  );
}

/** Lists keys with calls, the busiest first. */
function* keyViews({ counters }: CollectedMetrics): Steps<KeyTrafficView[]> {
  const keys = new Map<string, { requests: number; errors: number; refusals: number }>();
  eachSeries(counters, 'gateway_key_requests_total', ([key = '', statusClass], count) => {
    const counts = entryOf(keys, key, () => ({ requests: 0, errors: 0, refusals: 0 }));
    counts.requests += count;
    if (statusClass === '5xx') counts.errors += count;
    if (statusClass === '4xx') counts.refusals += count;
  });
  yield;
  return yield* most(
    Array.from(keys, ([name, counts]) => ({ name, ...counts })),
    ({ requests }) => requests,
    ({ name }) => name,
  );
}

/** Most entries of each list of the console. */
const mostEntries = 200;

/**
 * Returns the entries with the highest numbers. Equal ones are ordered by name, so that unchanged entries keep their
 * places.
 */
function* most<Entry>(
  entries: readonly Entry[],
  numberOf: (entry: Entry) => number,
  nameOf: (entry: Entry) => string,
): Steps<Entry[]> {
  const compare = (a: Entry, b: Entry): number =>
    numberOf(b) - numberOf(a) || (nameOf(a) < nameOf(b) ? -1 : 1);
  return (yield* sortSteps(entries, compare)).slice(0, mostEntries);
}

/** Returns the entry with a name, and creates it if there is none. */
function entryOf<Entry>(entries: Map<string, Entry>, name: string, make: () => Entry): Entry {
  let entry = entries.get(name);
  if (entry === undefined) {
    entry = make();
    entries.set(name, entry);
  }
  return entry;
}
