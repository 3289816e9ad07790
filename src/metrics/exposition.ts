import {
  counterFamilies,
  gaugeFamilies,
  histogramFamilies,
  type PrimaryName,
  primaryFamilies,
} from './families.js';
import type { HistogramRows, MetricsSnapshot, NumberRows } from './snapshot.js';
import { histogramText, numberText } from './text-format.js';

/** What only the primary process knows. */
export interface PrimaryFacts {
  /** Of the gateway, and of Node. */
  readonly version: string;
  readonly node: string;
  /** Workers that serve at this moment. */
  readonly workers: number;
  /** Workers that were started in the place of others. */
  readonly workerRestarts: number;
  /** How many times a config came into use, the first one included. */
  readonly configGeneration: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Numbers of the moment of its parts. */
  readonly gauges: readonly PrimaryGauge[];
  /** Its own mistakes, by where they were caught. */
  readonly faults?: readonly (readonly [where: string, count: number])[];
}

/** A number of the moment without labels, as a part of the primary tells it. */
export interface PrimaryGauge {
  readonly name: PrimaryName;
  readonly value: number;
}

/**
 * Everything in the text format of Prometheus.
 * @param merged of all workers
 */
export function exposition(merged: MetricsSnapshot, primary: PrimaryFacts): string {
  return (
    primaryText(primary) +
    countersText(withFaults(merged.counters, primary.faults ?? [])) +
    gaugesText(merged.gauges) +
    histogramsText(merged.histograms)
  );
}

/** Adds the mistakes of the primary to those of the workers. */
function withFaults(
  all: readonly NumberRows[],
  faults: readonly (readonly [where: string, count: number])[],
): readonly NumberRows[] {
  if (faults.length === 0) return all;
  const family = 'gateway_faults_total';
  const [, labels = [], values = []] = all.find(([name]) => name === family) ?? [];
  const sums = new Map(labels.map((where, index) => [where, values[index] ?? 0] as const));
  for (const [where, count] of faults) sums.set(where, (sums.get(where) ?? 0) + count);
  return [...all.filter(([name]) => name !== family), [family, [...sums.keys()], [...sums.values()]]];
}

function countersText(all: readonly NumberRows[]): string {
  let text = '';
  for (const [name, { help, labels, unitsPerOne }] of Object.entries(counterFamilies)) {
    const [, labelValues, values] = all.find(([family]) => family === name) ?? [];
    if (labelValues === undefined || values === undefined) continue;
    const ones = unitsPerOne === 1 ? values : values.map((value) => value / unitsPerOne);
    text += numberText({ name, help, type: 'counter', labels, labelValues, values: ones });
  }
  return text;
}

function gaugesText(all: readonly NumberRows[]): string {
  let text = '';
  for (const [name, { help, labels }] of Object.entries(gaugeFamilies)) {
    const [, labelValues, values] = all.find(([family]) => family === name) ?? [];
    if (labelValues === undefined || values === undefined) continue;
    text += numberText({ name, help, type: 'gauge', labels, labelValues, values });
  }
  return text;
}

function histogramsText(all: readonly HistogramRows[]): string {
  let text = '';
  for (const [name, { help, labels, bounds }] of Object.entries(histogramFamilies)) {
    const [, labelValues, counts, sums] = all.find(([family]) => family === name) ?? [];
    if (labelValues === undefined || counts === undefined || sums === undefined) continue;
    text += histogramText({ name, help, labels, labelValues, bounds, counts, sums });
  }
  return text;
}

function primaryText(primary: PrimaryFacts): string {
  const one = (name: PrimaryName, value: number, labelValues: readonly string[] = []): string =>
    numberText({ name, ...primaryFamilies[name], labelValues, values: [value] });
  return (
    one('gateway_build_info', 1, [primary.version, primary.node]) +
    one('gateway_workers', primary.workers) +
    one('gateway_worker_restarts_total', primary.workerRestarts) +
    one('gateway_config_generation', primary.configGeneration) +
    one('gateway_start_time_seconds', primary.startedAt / 1000) +
    primary.gauges.map(({ name, value }) => one(name, value)).join('')
  );
}
