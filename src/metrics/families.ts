import { nanosPerDollar } from '../wire/nano-dollars.js';

/** Upper bounds of histogram buckets in seconds. Each is at most 2.5 times the one before. */
export const latencyBounds: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600,
];

/** Bounds for the gateway's own share of a call, which is mostly below a millisecond. */
export const ownBounds: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
  0.5, 1, 2.5,
];

/** Label value of the series that collects everything beyond the bound of a family. */
export const otherLabel = 'other';

/** Label value of a call without a protocol, key or status. */
export const noLabel = 'none';

/** Labels with values from the config. They become `other` first. All other labels have a small fixed set of values. */
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
  /** At most four labels. */
  readonly labels: readonly LabelName[];
}

/** A number that only grows. */
interface CounterFamily extends FamilyBase {
  /** Values are counted in integers of this fraction of the family's unit, so that sums are exact. */
  readonly unitsPerOne: number;
}

/** A current value. */
export interface GaugeFamily extends FamilyBase {
  /** How the values of workers are combined. */
  readonly merge: 'sum' | 'max';
}

/** Durations, in seconds. */
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

/** A metric of the primary process, with a single value. */
interface PrimaryFamily {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels: readonly string[];
}

function primary(type: PrimaryFamily['type'], help: string, labels: readonly string[] = []): PrimaryFamily {
  return { type, help, labels };
}

/** Counters of a worker. */
export const counterFamilies = {
  gateway_requests_total: counter('Finished requests.', ['protocol', 'model', 'status', 'outcome']),
  gateway_key_requests_total: counter('Finished requests of a key.', ['key', 'status_class']),
  gateway_tokens_total: counter('Tokens. Input includes cached tokens, output includes reasoning tokens.', [
    'model',
    'kind',
  ]),
  gateway_cost_usd_total: counter('Cost of finished requests in USD.', ['model'], nanosPerDollar),
  gateway_cost_given_back_usd_total: counter(
    'Cost refunded later, for videos that failed or turned out shorter than requested.',
    ['model'],
    nanosPerDollar,
  ),
  gateway_request_bytes_total: counter('Bytes of request bodies.'),
  gateway_response_bytes_total: counter('Bytes of responses.'),
  gateway_upstream_attempts_total: counter('Attempts at an upstream target.', ['target', 'result']),
  gateway_retries_total: counter('Attempts at a target after an earlier attempt of the same request.', [
    'target',
  ]),
  gateway_implausible_usage_total: counter(
    'Answers whose reported usage was more than a call can have used, and was replaced by an estimate.',
    ['target'],
  ),
  gateway_hedges_total: counter(
    'Second attempts sent because the first was slow, and how many of them provided the answer.',
    ['model', 'result'],
  ),
  gateway_left_out_total: counter(
    'Members that translations left out, by name; unknown names are counted together.',
    ['member', 'direction'],
  ),
  gateway_limit_refusals_total: counter(
    'Refusals, by limit: requests, tokens, concurrent calls, budget, or a bound on what a key may hold at a worker.',
    ['limit'],
  ),
  gateway_ledger_dropped_total: counter('Ledger entries that were dropped.'),
  gateway_ledger_failures_total: counter('Failed attempts to write ledger entries to the store.'),
  gateway_log_dropped_total: counter(
    'Log lines that were dropped because the reader of the log was too slow.',
  ),
  gateway_faults_total: counter('Internal errors that were caught. Each ends at most one call or session.', [
    'where',
  ]),
  gateway_metrics_overflow_total: counter(
    'Times that a value, or several at once, was counted as "other" because its family was full.',
    ['family'],
  ),
} as const satisfies Record<string, CounterFamily>;

/** Histograms of a worker. */
export const histogramFamilies = {
  gateway_request_duration_seconds: histogram('Time from the start of a request to its end.', ['protocol']),
  gateway_first_byte_seconds: histogram(
    'Time from the start of a request to the first byte of its response.',
    ['protocol', 'model'],
  ),
  gateway_target_first_byte_seconds: histogram(
    'Time from the start of an attempt to the response head of the target, for successful responses.',
    ['target'],
  ),
  gateway_own_seconds: histogram("The gateway's own share of the duration of a request.", [], ownBounds),
} as const satisfies Record<string, HistogramFamily>;

/** Gauges of a worker, which are read on request. */
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
    'Bytes that are known to be held for WebSockets (bounded by sockets.heldBytes).',
  ),
  gateway_socket_unseen_bytes: gauge(
    'sum',
    'Growth of process memory that may be unfinished WebSocket messages (bounded by sockets.heldBytes).',
  ),
  gateway_ledger_waiting_entries: gauge('sum', 'Ledger entries that wait to be written.'),
  gateway_ledger_waiting_bytes: gauge(
    'sum',
    'Bytes of ledger entries that wait to be written. Above 64 MiB a worker drops the oldest.',
  ),
  gateway_ledger_lag_seconds: gauge('max', 'Age of the oldest ledger entry that waits to be written.'),
  gateway_log_waiting_lines: gauge('sum', 'Access log lines that wait to be written.'),
  gateway_resident_memory_bytes: gauge(
    'sum',
    'Resident memory of all workers. Shared pages are counted for each.',
  ),
  gateway_heap_used_bytes: gauge('sum', 'JavaScript heap in use.'),
  gateway_event_loop_delay_seconds: gauge(
    'max',
    'Event loop delay of the worst worker over the last 30 to 60 seconds.',
    ['stat'],
  ),
  gateway_targets: gauge('max', 'Targets in each state, at the worker that sees the most.', ['state']),
  gateway_target_state: gauge(
    'max',
    '1 if at least one worker sees the target in this state, else 0. Covers the unhealthy and the busiest targets.',
    ['target', 'state'],
  ),
  gateway_target_in_flight: gauge('sum', 'Requests in flight to a target. Covers the same targets.', [
    'target',
  ]),
} as const satisfies Record<string, GaugeFamily>;

/** Metrics of the primary process. */
export const primaryFamilies = {
  gateway_build_info: primary('gauge', 'Always 1. The labels are the versions of the gateway and of Node.', [
    'version',
    'node',
  ]),
  gateway_workers: primary('gauge', 'Workers that serve.'),
  gateway_worker_restarts_total: primary('counter', 'Workers that were started to replace another.'),
  gateway_config_generation: primary('gauge', 'Number of the config in use.'),
  gateway_config_last_reload_successful: primary(
    'gauge',
    '1 if the last reload is in effect in every worker, or there was none, else 0.',
  ),
  gateway_start_time_seconds: primary('gauge', 'Start time of the gateway, in Unix seconds.'),
  gateway_store_bytes: primary(
    'gauge',
    'Disk space of the store, with its indexes. Absent before it is created, or if it cannot be reached.',
  ),
  gateway_budgets_store_available: primary(
    'gauge',
    '1 if the budget accounts were reachable when last used, else 0.',
  ),
  gateway_budget_used_ratio: primary(
    'gauge',
    'Used share of a budget in its period, from 0 to 1, for budgets that calls at this host use. The 1,000 fullest.',
    ['owner', 'name'],
  ),
  gateway_limits_store_available: primary(
    'gauge',
    '1 while hosts share rate limits through the store, 0 while it is unreachable.',
  ),
} as const satisfies Record<string, PrimaryFamily>;

export type CounterName = keyof typeof counterFamilies;
export type HistogramName = keyof typeof histogramFamilies;
export type PrimaryName = keyof typeof primaryFamilies;
export type GaugeName = keyof typeof gaugeFamilies;
