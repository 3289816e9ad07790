import type { Target } from '../../src/config/types.js';
import type { GaugeSources } from '../../src/metrics/gauges.js';
import type { MetricsSnapshot } from '../../src/metrics/snapshot.js';

/** A target as far as its name goes, another object each time. */
export function target(upstream: string, model: string): Target {
  return { upstream: { name: upstream }, model } as Target;
}

/** Gauges of a worker that does nothing, but for what is given. */
export function gaugeSources(given: Partial<GaugeSources> = {}): GaugeSources {
  return {
    openRequests: () => 0,
    openSockets: () => 0,
    bufferedBytes: () => 0,
    socketMemory: () => ({ bytes: 0, unseenBytes: 0 }),
    ledgerWaiting: () => 0,
    ledgerWaitingBytes: () => 0,
    ledgerLagMs: () => 0,
    logWaiting: () => 0,
    upstream: () => ({ open: 0, idle: 0, busy: 0, waiting: 0 }),
    targets: () => [],
    process: () => ({ residentBytes: 0, heapBytes: 0, loopDelay: { p50: 0, p99: 0, max: 0 } }),
    ...given,
  };
}

/** The numbers of a family by their label values, joined with spaces. */
export function numbers(
  snapshot: MetricsSnapshot,
  name: string,
  part: 'counters' | 'gauges' = 'counters',
): Record<string, number> {
  const [, labels = [], values = []] = snapshot[part].find(([family]) => family === name) ?? [];
  const width = labels.length / values.length;
  return Object.fromEntries(
    values.map((value, row) => [labels.slice(row * width, (row + 1) * width).join(' '), value]),
  );
}

/** The counts of a family of histograms by their label values, joined with spaces. */
export function bucketCounts(snapshot: MetricsSnapshot, name: string): Record<string, number[]> {
  const [, labels = [], counts = [], sums = []] =
    snapshot.histograms.find(([family]) => family === name) ?? [];
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
export function sent(snapshot: MetricsSnapshot): MetricsSnapshot {
  return JSON.parse(JSON.stringify(snapshot)) as MetricsSnapshot;
}
