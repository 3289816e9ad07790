import { counterFamilies, gaugeFamilies, histogramFamilies } from './families.js';
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
}

/** A number of the moment without labels, as a part of the primary tells it. */
export interface PrimaryGauge {
  readonly name: string;
  readonly help: string;
  readonly value: number;
}

/**
 * Everything in the text format of Prometheus.
 * @param merged of all workers
 */
export function exposition(merged: MetricsSnapshot, primary: PrimaryFacts): string {
  return (
    primaryText(primary) +
    countersText(merged.counters) +
    gaugesText(merged.gauges) +
    histogramsText(merged.histograms)
  );
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
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): string =>
    numberText({ name, help, type, labels: [], labelValues: [], values: [value] });
  return (
    numberText({
      name: 'gateway_build_info',
      help: 'Always 1; its labels say what runs.',
      type: 'gauge',
      labels: ['version', 'node'],
      labelValues: [primary.version, primary.node],
      values: [1],
    }) +
    one('gateway_workers', 'gauge', 'Workers that serve.', primary.workers) +
    one(
      'gateway_worker_restarts_total',
      'counter',
      'Workers that were started in the place of others.',
      primary.workerRestarts,
    ) +
    one('gateway_config_generation', 'gauge', 'Number of the config in use.', primary.configGeneration) +
    one(
      'gateway_start_time_seconds',
      'gauge',
      'When the gateway started, in Unix seconds.',
      primary.startedAt / 1000,
    ) +
    primary.gauges.map(({ name, help, value }) => one(name, 'gauge', help, value)).join('')
  );
}
