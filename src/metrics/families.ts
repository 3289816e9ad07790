import { nanosPerDollar } from '../wire/nano-dollars.js';
/** Upper bounds of buckets in seconds, ascending, each at most two and a half times the one before. */
export const latencyBounds: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600,
];

/** The same for the gateway's own share of a call, most of which is below a millisecond. */
export const ownBounds: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
  0.5, 1, 2.5,
];

/** The label value of all series for which there was no room. */
export const otherLabel = 'other';

/** The label value where a call has none: no protocol, no key, no status. */
export const noLabel = 'none';

/** Labels whose values come from a config. They become `other` first; the others have a few values that are known. */
export const openLabels: ReadonlySet<string> = new Set(['model', 'target', 'key']);

/** Labels that a series of any family may have. */
type LabelName =
  | 'direction'
  | 'family'
  | 'key'
  | 'kind'
  | 'limit'
  | 'member'
  | 'model'
  | 'outcome'
  | 'protocol'
  | 'result'
  | 'stat'
  | 'state'
  | 'status'
  | 'status_class'
  | 'target'
  | 'where';

interface FamilyBase {
  readonly help: string;
  /** At most four. */
  readonly labels: readonly LabelName[];
}

/** A number that only grows. */
interface CounterFamily extends FamilyBase {
  /** Its values are kept in whole units of which so many make one of the family's own: they add up exactly. */
  readonly unitsPerOne: number;
}

/** A number of this moment. */
export interface GaugeFamily extends FamilyBase {
  /** What it is for all workers together. */
  readonly merge: 'sum' | 'max';
}

/** How long something took, in seconds. */
interface HistogramFamily extends FamilyBase {
  readonly bounds: readonly number[];
}

function counter(help: string, labels: readonly LabelName[] = [], unitsPerOne = 1): CounterFamily {
  return { help, labels, unitsPerOne };
}

function gauge(merge: 'sum' | 'max', help: string, labels: readonly LabelName[] = []): GaugeFamily {
  return { help, labels, merge };
}

function histogram(
  help: string,
  labels: readonly LabelName[] = [],
  bounds: readonly number[] = latencyBounds,
): HistogramFamily {
  return { help, labels, bounds };
}

/** One that the primary process has a single number of. */
interface PrimaryFamily {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels: readonly string[];
}

function primary(type: PrimaryFamily['type'], help: string, labels: readonly string[] = []): PrimaryFamily {
  return { type, help, labels };
}

/** Every family of counters that a worker keeps. */
export const counterFamilies = {
  gateway_requests_total: counter('Finished requests.', ['protocol', 'model', 'status', 'outcome']),
  gateway_key_requests_total: counter('Finished requests of a key.', ['key', 'status_class']),
  gateway_tokens_total: counter(
    'Tokens; cached ones are part of the input, and those for reasoning part of the output.',
    ['model', 'kind'],
  ),
  gateway_cost_usd_total: counter('Cost of finished requests in USD.', ['model'], nanosPerDollar),
  gateway_cost_given_back_usd_total: counter(
    'What of it was given back since, for videos that failed or are shorter than they were asked for.',
    ['model'],
    nanosPerDollar,
  ),
  gateway_request_bytes_total: counter('Bytes of request bodies.'),
  gateway_response_bytes_total: counter('Bytes of answers.'),
  gateway_upstream_attempts_total: counter('Attempts at an upstream target.', ['target', 'result']),
  gateway_retries_total: counter('Attempts at a target after another attempt of the same request.', [
    'target',
  ]),
  gateway_hedges_total: counter(
    'Attempts beside a slow first one of the same request: sent, and those of them that answered it.',
    ['model', 'result'],
  ),
  gateway_left_out_total: counter(
    'Members that translations left out, by their names as far as those are known.',
    ['member', 'direction'],
  ),
  gateway_limit_refusals_total: counter(
    'What was refused by a limit of requests, tokens or calls at once, by a budget, or for what a key may hold at a worker.',
    ['limit'],
  ),
  gateway_ledger_dropped_total: counter('Ledger entries that were dropped.'),
  gateway_ledger_failures_total: counter('How often the store did not take entries of the ledger.'),
  gateway_log_dropped_total: counter(
    'Lines of the log that were dropped, since whoever reads it was too slow.',
  ),
  gateway_faults_total: counter(
    "Mistakes of the gateway's own that were caught; each ends at most the call or session that it belongs to.",
    ['where'],
  ),
  gateway_metrics_overflow_total: counter(
    'How often something, or several calls at once, was counted as "other" because its family was full.',
    ['family'],
  ),
} as const satisfies Record<string, CounterFamily>;

/** Every family of histograms that a worker keeps. */
export const histogramFamilies = {
  gateway_request_duration_seconds: histogram('Time from the start of a request to its end.', ['protocol']),
  gateway_first_byte_seconds: histogram('Time from the start of a request to the first byte of its answer.', [
    'protocol',
    'model',
  ]),
  gateway_target_first_byte_seconds: histogram(
    'Time from the beginning of an attempt at a target to the head of its answer, where that is a good one.',
    ['target'],
  ),
  gateway_own_seconds: histogram("The gateway's own share of the time of a request.", [], ownBounds),
} as const satisfies Record<string, HistogramFamily>;

/** Every family of gauges, read by a worker when it is asked. */
export const gaugeFamilies = {
  gateway_open_requests: gauge('sum', 'Requests in flight.'),
  gateway_open_sockets: gauge('sum', 'Open WebSocket sessions.'),
  gateway_upstream_connections_open: gauge('sum', 'Upstream connections of any state.'),
  gateway_upstream_connections_idle: gauge('sum', 'Upstream connections without a request.'),
  gateway_upstream_connections_busy: gauge('sum', 'Upstream connections with a request.'),
  gateway_upstream_requests_waiting: gauge('sum', 'Requests that wait for an upstream connection.'),
  gateway_buffered_bytes: gauge('sum', 'Bytes of request bodies held in memory.'),
  gateway_socket_counted_bytes: gauge(
    'sum',
    'Bytes that WebSockets hold, as far as they are counted (bounded by sockets.heldBytes).',
  ),
  gateway_socket_unseen_bytes: gauge(
    'sum',
    'Bytes measured in the process that may be unfinished messages of WebSockets (bounded likewise).',
  ),
  gateway_ledger_waiting_entries: gauge('sum', 'Entries that are not in the ledger yet.'),
  gateway_ledger_waiting_bytes: gauge(
    'sum',
    'Bytes of memory that they take up; each worker drops the oldest above 64 MiB.',
  ),
  gateway_ledger_lag_seconds: gauge('max', 'Age of the oldest entry that is not in the ledger yet.'),
  gateway_log_waiting_lines: gauge('sum', 'Request lines that are not in the log yet.'),
  gateway_resident_memory_bytes: gauge(
    'sum',
    'Resident memory of all workers; pages that they share are counted for each.',
  ),
  gateway_heap_used_bytes: gauge('sum', 'JavaScript heap in use.'),
  gateway_event_loop_delay_seconds: gauge(
    'max',
    'Delay of the event loop in the last half minute to minute, of the worst worker.',
    ['stat'],
  ),
  gateway_targets: gauge('max', 'Targets in each state, at the worker that sees most of them in it.', [
    'state',
  ]),
  gateway_target_state: gauge(
    'max',
    '1 where at least one worker sees the target in this state, else 0; of the targets that are ill or busiest.',
    ['target', 'state'],
  ),
  gateway_target_in_flight: gauge('sum', 'Requests that are under way to a target, of the same targets.', [
    'target',
  ]),
} as const satisfies Record<string, GaugeFamily>;

/** What only the primary process knows. */
export const primaryFamilies = {
  gateway_build_info: primary('gauge', 'Always 1; its labels say what runs.', ['version', 'node']),
  gateway_workers: primary('gauge', 'Workers that serve.'),
  gateway_worker_restarts_total: primary('counter', 'Workers that were started in the place of others.'),
  gateway_config_generation: primary('gauge', 'Number of the config in use.'),
  gateway_config_last_reload_successful: primary(
    'gauge',
    '1 where the last reload is in force in every worker, or there was none; else 0.',
  ),
  gateway_start_time_seconds: primary('gauge', 'When the gateway started, in Unix seconds.'),
  gateway_store_bytes: primary(
    'gauge',
    'What the embedded store takes of the disk; missing where the store is another one, or not made yet.',
  ),
  gateway_budgets_store_available: primary(
    'gauge',
    '1 while the accounts of budgets can be reached, as far as anybody asked for them, else 0.',
  ),
  gateway_budget_used_ratio: primary(
    'gauge',
    'How much of a budget is used in its period, of 1, where calls at this host have asked for it; the 1,000 fullest.',
    ['owner', 'name'],
  ),
  gateway_limits_store_available: primary(
    'gauge',
    '1 while hosts can share rate limits by the store, 0 while it cannot be reached.',
  ),
} as const satisfies Record<string, PrimaryFamily>;

export type CounterName = keyof typeof counterFamilies;
export type HistogramName = keyof typeof histogramFamilies;
export type PrimaryName = keyof typeof primaryFamilies;
export type GaugeName = keyof typeof gaugeFamilies;
