import type { Target } from '../../src/config/types.js';
import type { CollectedMetrics } from '../../src/metrics/collected.js';
import type { GaugeReadings } from '../../src/metrics/gauges.js';

/** A target as far as its name goes, another object each time. */
export function target(upstream: string, model: string): Target {
  return { upstream: { name: upstream }, model } as Target;
}

/** Reads the gauges of a worker that does nothing, but for what is given. */
export function gaugeReader(
  numbers: Partial<GaugeReadings['numbers']> = {},
  others: Partial<Omit<GaugeReadings, 'numbers'>> = {},
): () => GaugeReadings {
  const none = {
    gateway_open_requests: 0,
    gateway_open_sockets: 0,
    gateway_upstream_connections_open: 0,
    gateway_upstream_connections_idle: 0,
    gateway_upstream_connections_busy: 0,
    gateway_upstream_requests_waiting: 0,
    gateway_buffered_bytes: 0,
    gateway_socket_counted_bytes: 0,
    gateway_socket_unseen_bytes: 0,
    gateway_ledger_waiting_entries: 0,
    gateway_ledger_waiting_bytes: 0,
    gateway_ledger_lag_seconds: 0,
    gateway_log_waiting_lines: 0,
    gateway_resident_memory_bytes: 0,
    gateway_heap_used_bytes: 0,
  };
  const loopDelay = { p50: 0, p99: 0, max: 0 };
  return () => ({ numbers: { ...none, ...numbers }, loopDelay, targets: [], ...others });
}

/** The numbers of a family by their label values, joined with spaces. */
export function numbers(
  metrics: CollectedMetrics,
  name: string,
  part: 'counters' | 'gauges' = 'counters',
): Record<string, number> {
  const [, labels = [], values = []] = metrics[part].find(([family]) => family === name) ?? [];
  const width = labels.length / values.length;
  return Object.fromEntries(
    values.map((value, row) => [labels.slice(row * width, (row + 1) * width).join(' '), value]),
  );
}

/** The counts of a family of histograms by their label values, joined with spaces. */
export function bucketCounts(metrics: CollectedMetrics, name: string): Record<string, number[]> {
  const [, labels = [], counts = [], sums = []] =
    metrics.histograms.find(([family]) => family === name) ?? [];
  const width = labels.length / sums.length;
  const buckets = counts.length / sums.length;
  return Object.fromEntries(
    sums.map((_sum, row) => [
      labels.slice(row * width, (row + 1) * width).join(' '),
      counts.slice(row * buckets, (row + 1) * buckets),
    ]),
  );
}

/** As it comes out of another process. */
export function sent(metrics: CollectedMetrics): CollectedMetrics {
  return JSON.parse(JSON.stringify(metrics)) as CollectedMetrics;
}
