import { test } from 'tap';
import { expositionTexts, primaryGauge } from '../../src/metrics/exposition.js';
import { counterFamilies, gaugeFamilies, histogramFamilies } from '../../src/metrics/families.js';
import { createRecorder } from '../../src/metrics/recorder.js';
import { createTotals } from '../../src/metrics/totals.js';
import { callRecord } from '../support/call-record.js';
import { parseText } from './parse-text.js';
import { gaugeReader, target } from './samples.js';

const primary = {
  version: '1.2.3',
  node: 'v20.20.2',
  workers: 4,
  workerRestarts: 1,
  configGeneration: 2,
  startedAt: 1_700_000_000_500,
  faults: [],
  gauges: [
    primaryGauge('gateway_limits_store_available', 1),
    {
      name: 'gateway_budget_used_ratio' as const,
      labelValues: ['key', 'team-a', 'model', 'm"1'],
      values: [0.5, 1.25],
    },
  ],
};

test('everything that was counted is written, with names that say their kind', async (t) => {
  const recorder = createRecorder(
    gaugeReader({}, { targets: [{ upstream: 'main', model: 'x', state: 'closed', inFlight: 2, calls: 1 }] }),
    { numbers: 8, histograms: 8 },
  );
  const usage = { input: 10, output: 20, cached: 4, reasoning: 5 };
  for (let i = 0; i < 20; i++)
    recorder.record(callRecord({ model: `a "${i}"\n`, usage, costNanoUsd: 1_500_000 }));
  recorder.recordAttempt(target('main', 'x'), 'ok');
  recorder.recordFirstByte(target('main', 'x'), 20);
  recorder.recordRetry(target('main', 'x'));
  recorder.count('gateway_hedges_total', 1, 'm', 'sent');
  recorder.count('gateway_implausible_usage_total', 1, 'u:m');
  recorder.record(callRecord({ outcome: 'correction', costNanoUsd: -1 }));
  recorder.recordLeftOut(['top_k'], 'request');
  recorder.count('gateway_limit_refusals_total', 1, 'tokens');
  recorder.count('gateway_faults_total', 1, 'timer');
  const totals = createTotals();
  totals.update(1, recorder.collect());
  const families = parseText([...expositionTexts(totals.merged(), primary)].join(''));

  for (const name of Object.keys(counterFamilies)) {
    t.equal(families.get(name)?.type, 'counter', name);
    t.match(name, /^gateway_[a-z_]+_total$/);
  }
  for (const name of Object.keys(gaugeFamilies)) t.equal(families.get(name)?.type, 'gauge', name);
  for (const name of Object.keys(histogramFamilies)) t.equal(families.get(name)?.type, 'histogram', name);
  for (const [name, { help }] of families) t.ok(help.length > 0, name);
  t.same(families.get('gateway_cost_usd_total')?.samples[0], {
    name: 'gateway_cost_usd_total',
    labels: { model: 'a "0"\n' },
    value: 0.0015,
  });
  t.equal(
    families.get('gateway_requests_total')?.samples.length,
    7,
    'six models, and one series for all others',
  );
});

test('the primary process tells what only it knows', async (t) => {
  const families = parseText([...expositionTexts(createTotals().merged(), primary)].join(''));
  t.same(families.get('gateway_build_info')?.samples, [
    { name: 'gateway_build_info', labels: { version: '1.2.3', node: 'v20.20.2' }, value: 1 },
  ]);
  const firstValue = (name: string) => families.get(name)?.samples[0]?.value;
  t.equal(firstValue('gateway_workers'), 4);
  t.equal(firstValue('gateway_worker_restarts_total'), 1);
  t.equal(firstValue('gateway_config_generation'), 2);
  t.equal(firstValue('gateway_start_time_seconds'), 1_700_000_000.5);
  t.equal(firstValue('gateway_limits_store_available'), 1);
});

test('counters without labels are there from the start, and families without series are not', async (t) => {
  const families = parseText([...expositionTexts(createTotals().merged(), primary)].join(''));
  t.equal(families.get('gateway_ledger_dropped_total')?.samples[0]?.value, 0);
  t.equal(families.get('gateway_own_seconds')?.samples.at(-1)?.value, 0);
  t.notOk(families.has('gateway_requests_total'));
});
