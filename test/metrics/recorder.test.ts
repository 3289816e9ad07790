import { test } from 'tap';
import { latencyBounds } from '../../src/metrics/families.js';
import { createRecorder, targetName } from '../../src/metrics/recorder.js';
import { callRecord } from '../support/call-record.js';
import { bucketCounts, gaugeReader, numbers, sent, target } from './samples.js';

test('a call is counted in every family that it concerns', async (t) => {
  const recorder = createRecorder(gaugeReader());
  const usage = { input: 10, output: 20, cached: 4, reasoning: 0 };
  recorder.record(callRecord({ usage, costNanoUsd: 12_345 }));
  recorder.record(callRecord({ usage, costNanoUsd: 1 }));
  const metrics = sent(recorder.collect());
  t.same(numbers(metrics, 'gateway_requests_total'), { 'chat sim-text 200 complete': 2 });
  t.same(numbers(metrics, 'gateway_key_requests_total'), { 'team-a 2xx': 2 });
  t.same(numbers(metrics, 'gateway_tokens_total'), {
    'sim-text input': 20,
    'sim-text output': 40,
    'sim-text cached': 8,
  });
  t.same(numbers(metrics, 'gateway_cost_usd_total'), { 'sim-text': 12_346 });
  t.same(numbers(metrics, 'gateway_request_bytes_total'), { '': 200 });
  t.same(numbers(metrics, 'gateway_response_bytes_total'), { '': 2000 });
  const counts = bucketCounts(metrics, 'gateway_request_duration_seconds').chat as number[];
  t.equal(counts[latencyBounds.indexOf(0.25)], 2);
  t.same(Object.keys(bucketCounts(metrics, 'gateway_first_byte_seconds')), ['chat sim-text']);
  t.equal(bucketCounts(metrics, 'gateway_own_seconds')['']?.[4], 2);
});

test('calls that ended alike are counted together, as if they came one by one', async (t) => {
  const one = createRecorder(gaugeReader());
  const all = createRecorder(gaugeReader());
  const usage = { input: 10, output: 20, cached: 4, reasoning: 1 };
  const times: [number, number, number][] = [
    [250, 125, 0.125],
    [3, -1, -1],
  ];
  for (const [durationMs, firstByteMs, ownMs] of times) {
    one.record(callRecord({ usage, costNanoUsd: 5, durationMs, firstByteMs, ownMs }));
  }
  const usageOfBoth = { input: 20, output: 40, cached: 8, reasoning: 2 };
  const both = callRecord({ usage: usageOfBoth, bytesIn: 200, bytesOut: 2000, costNanoUsd: 10 });
  const counter = all.recordSums(both, 2);
  for (const each of times) counter.observe(...each);
  t.same(all.collect(), one.collect());
  all.recordSums(callRecord(), 1);
  t.equal(numbers(all.collect(), 'gateway_requests_total')['chat sim-text 200 complete'], 3);
});

test('a call that was refused early has no names, no first byte and no tokens', async (t) => {
  const recorder = createRecorder(gaugeReader());
  const early = { protocol: null, model: null, keyId: null, firstByteMs: -1, ownMs: -1 };
  recorder.record(callRecord({ ...early, status: 401, outcome: 'refused' }));
  recorder.record(callRecord({ ...early, status: 0, outcome: 'client_gone' }));
  const metrics = recorder.collect();
  t.same(numbers(metrics, 'gateway_requests_total'), {
    'none none 401 refused': 1,
    'none none none client_gone': 1,
  });
  t.same(numbers(metrics, 'gateway_key_requests_total'), { 'none 4xx': 1, 'none none': 1 });
  t.same(numbers(metrics, 'gateway_tokens_total'), {});
  t.same(bucketCounts(metrics, 'gateway_first_byte_seconds'), {});
  t.equal(
    bucketCounts(metrics, 'gateway_own_seconds')['']?.every((count) => count === 0),
    true,
  );
});

test('what an upstream may claim does no harm to counters', async (t) => {
  const recorder = createRecorder(gaugeReader());
  for (const claim of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e300]) {
    const usage = { input: claim, output: claim, cached: claim, reasoning: claim };
    recorder.record(callRecord({ usage, costNanoUsd: claim, status: claim, bytesIn: claim }));
  }
  const metrics = recorder.collect();
  t.same(numbers(metrics, 'gateway_tokens_total'), {});
  t.same(numbers(metrics, 'gateway_cost_usd_total'), {});
  t.same(numbers(metrics, 'gateway_request_bytes_total'), { '': 0 });
  t.same(numbers(metrics, 'gateway_requests_total'), { 'chat sim-text none complete': 4 });
  t.same(sent(metrics), metrics);
});

test('attempts at a target are counted on under its name after reloads, whether or not they made it anew', (t) => {
  const recorder = createRecorder(gaugeReader());
  const kept = target('main', 'kept');
  const name = targetName(kept);
  for (let reloads = 0; reloads < 4; reloads++) {
    for (const each of [kept, target('main', 'anew')]) {
      recorder.recordAttempt(each, 'ok');
      recorder.recordFirstByte(each, 1);
    }
    recorder.renewTargets();
    t.equal(targetName(kept), name);
  }
  // A call of the first config that has lasted through all reloads.
  recorder.recordAttempt(kept, 'reset');
  const metrics = recorder.collect();
  const counts = { 'main/kept ok': 4, 'main/kept reset': 1, 'main/anew ok': 4 };
  t.same(numbers(metrics, 'gateway_upstream_attempts_total'), counts);
  const firstBytes = bucketCounts(metrics, 'gateway_target_first_byte_seconds');
  t.same(Object.keys(firstBytes).sort(), ['main/anew', 'main/kept']);
  t.end();
});

test('attempts are counted by the name of the target, whichever config it is of', async (t) => {
  const recorder = createRecorder(gaugeReader());
  recorder.recordAttempt(target('main', 'gpt-x'), 'reset');
  const reloaded = target('main', 'gpt-x');
  recorder.recordAttempt(reloaded, 'reset');
  recorder.recordAttempt(reloaded, 'ok');
  recorder.recordRetry(reloaded);
  recorder.count('gateway_hedges_total', 1, 'm', 'sent');
  recorder.count('gateway_hedges_total', 1, 'm', 'sent');
  recorder.count('gateway_hedges_total', 1, 'm', 'won');
  recorder.count('gateway_limit_refusals_total', 1, 'requests');
  recorder.count('gateway_ledger_dropped_total', 3);
  recorder.count('gateway_ledger_dropped_total', 4);
  recorder.count('gateway_ledger_failures_total', 1);
  const metrics = recorder.collect();
  t.same(numbers(metrics, 'gateway_upstream_attempts_total'), { 'main/gpt-x reset': 2, 'main/gpt-x ok': 1 });
  t.same(numbers(metrics, 'gateway_retries_total'), { 'main/gpt-x': 1 });
  t.same(numbers(metrics, 'gateway_hedges_total'), { 'm sent': 2, 'm won': 1 });
  t.same(numbers(metrics, 'gateway_limit_refusals_total'), { requests: 1 });
  t.same(numbers(metrics, 'gateway_ledger_dropped_total'), { '': 7 });
  t.same(numbers(metrics, 'gateway_ledger_failures_total'), { '': 1 });
});

test('gauges are read each time that metrics are collected', async (t) => {
  let open = 3;
  const recorder = createRecorder(() =>
    gaugeReader(
      {
        gateway_open_requests: open,
        gateway_buffered_bytes: Number.NaN,
        gateway_upstream_connections_open: 5,
        gateway_upstream_connections_idle: 2,
        gateway_upstream_connections_busy: 3,
        gateway_upstream_requests_waiting: 1,
        gateway_resident_memory_bytes: 100,
        gateway_heap_used_bytes: 50,
      },
      {
        targets: [{ upstream: 'main', model: 'gpt-x', state: 'open', inFlight: 7, calls: 1 }],
        loopDelay: { p50: 0.001, p99: 0.002, max: 0.5 },
      },
    )(),
  );
  const metrics = recorder.collect();
  t.same(numbers(metrics, 'gateway_open_requests', 'gauges'), { '': 3 });
  t.same(numbers(metrics, 'gateway_buffered_bytes', 'gauges'), { '': 0 });
  t.same(numbers(metrics, 'gateway_upstream_connections_busy', 'gauges'), { '': 3 });
  t.same(numbers(metrics, 'gateway_upstream_requests_waiting', 'gauges'), { '': 1 });
  t.same(numbers(metrics, 'gateway_event_loop_delay_seconds', 'gauges'), {
    p50: 0.001,
    p99: 0.002,
    max: 0.5,
  });
  t.same(numbers(metrics, 'gateway_target_in_flight', 'gauges'), { 'main/gpt-x': 7 });
  t.same(numbers(metrics, 'gateway_target_state', 'gauges'), {
    'main/gpt-x closed': 0,
    'main/gpt-x cooling': 0,
    'main/gpt-x open': 1,
    'main/gpt-x half-open': 0,
  });
  open = 4;
  t.same(numbers(recorder.collect(), 'gateway_open_requests', 'gauges'), { '': 4 });
});

test('no family grows without bound, and what had no room is counted', async (t) => {
  const recorder = createRecorder(gaugeReader(), { numbers: 32, histograms: 8 });
  const usage = { input: 1, output: 1, cached: 1, reasoning: 1 };
  for (let call = 0; call < 2000; call++) {
    const i = call % 1000;
    recorder.record(callRecord({ model: `model-${i}`, keyId: `key-${i}`, status: 200 + (i % 300), usage }));
    recorder.recordAttempt(target('main', `model-${i}`), 'ok');
  }
  const metrics = recorder.collect();
  for (const [name, , values] of metrics.counters) t.ok(values.length <= 32, name);
  for (const [name, , , sums] of metrics.histograms) t.ok(sums.length <= 8, name);
  const sum = (values: Record<string, number>) => Object.values(values).reduce((a, b) => a + b, 0);
  t.equal(sum(numbers(metrics, 'gateway_requests_total')), 2000);
  t.equal(sum(numbers(metrics, 'gateway_tokens_total')), 8000);
  const overflow = numbers(metrics, 'gateway_metrics_overflow_total');
  t.equal(overflow.gateway_requests_total, 2 * (1000 - 27));
  t.equal(overflow.gateway_key_requests_total, 2 * (1000 - 27));
  t.equal(overflow.gateway_upstream_attempts_total, 2 * (1000 - 27));
  t.equal(overflow.gateway_first_byte_seconds, 2 * (1000 - 6));
  t.equal(overflow.gateway_request_duration_seconds, undefined);
});

test('collected metrics do not change any more', async (t) => {
  const recorder = createRecorder(gaugeReader());
  recorder.record(callRecord());
  const metrics = recorder.collect();
  const before = sent(metrics);
  recorder.record(callRecord({ model: 'another' }));
  t.same(metrics, before);
});

test('members that were left out are counted by name, invented ones as one', async (t) => {
  const recorder = createRecorder(gaugeReader());
  recorder.recordLeftOut(['top_k', 'generationConfig.topK', 'invented'], 'request');
  recorder.recordLeftOut(['top_k', 'x.y.z', 'constructor'], 'request');
  recorder.recordLeftOut(['citations', 'invented'], 'answer');
  t.same(numbers(recorder.collect(), 'gateway_left_out_total'), {
    'citations answer': 1,
    'other answer': 1,
    'top_k request': 2,
    'topK request': 1,
    'other request': 3,
  });
});

test('what was taken is told once', async (t) => {
  const recorder = createRecorder(gaugeReader());
  recorder.record(callRecord());
  recorder.recordFirstByte(target('main', 'x'), 30);
  recorder.count('gateway_log_dropped_total', 2);
  const taken = recorder.take();
  t.same(numbers(taken, 'gateway_requests_total'), { 'chat sim-text 200 complete': 1 });
  t.same(numbers(taken, 'gateway_log_dropped_total'), { '': 2 });
  t.equal(
    bucketCounts(taken, 'gateway_target_first_byte_seconds')['main/x']?.[latencyBounds.indexOf(0.05)],
    1,
  );
  t.same(numbers(recorder.take(), 'gateway_requests_total'), {});
  recorder.record(callRecord());
  t.same(numbers(recorder.take(), 'gateway_requests_total'), { 'chat sim-text 200 complete': 1 });
});

test('a model that becomes busy is counted by itself from then on', async (t) => {
  const recorder = createRecorder(gaugeReader(), { numbers: 16, histograms: 8 });
  const attempt = target('main', 'late');
  const once = (model: string): void => recorder.record(callRecord({ model, keyId: model }));
  for (let i = 0; i < 20; i++) once(`model-${i}`);
  for (let i = 0; i < 20; i++) recorder.recordAttempt(target('main', `${i}`), 'ok');
  for (let i = 0; i < 9; i++) once('late');
  for (let i = 0; i < 9; i++) recorder.recordAttempt(attempt, 'ok');
  t.equal(numbers(recorder.take(), 'gateway_requests_total')['chat late 200 complete'], undefined);
  once('late');
  recorder.recordAttempt(attempt, 'ok');
  const taken = recorder.take();
  t.equal(numbers(taken, 'gateway_requests_total')['chat late 200 complete'], 1);
  t.equal(numbers(taken, 'gateway_key_requests_total')['late 2xx'], 1);
  t.equal(numbers(taken, 'gateway_upstream_attempts_total')['main/late ok'], 1);
});
