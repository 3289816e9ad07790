import assert from 'node:assert/strict';
import { test } from 'tap';
import type { CollectedMetrics } from '../../src/metrics/collected.js';
import { createRecorder, type Recorder } from '../../src/metrics/recorder.js';
import { defaultCaps, type SeriesCaps } from '../../src/metrics/tables.js';
import { createTotals, type Totals } from '../../src/metrics/totals.js';
import { callRecord } from '../support/call-record.js';
import { fc } from '../support/seed.js';
import { bucketCounts, gaugeReader, numbers, sent } from './samples.js';

const workers = 3;

type Step =
  | { readonly type: 'record'; readonly worker: number; readonly model: string; readonly ms: number }
  | { readonly type: 'tell' | 'restart'; readonly worker: number }
  | { readonly type: 'merge' };

const worker = fc.integer({ min: 0, max: workers - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('record' as const),
      worker,
      model: fc.constantFrom(...'abcdefghijkl'),
      ms: fc.integer({ min: 0, max: 700_000 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('tell' as const, 'restart' as const), worker }) },
  { weight: 1, arbitrary: fc.constant({ type: 'merge' as const }) },
);

/** Workers that come and go, and what their primary is told. */
class Cluster {
  readonly totals: Totals;
  readonly #limits: SeriesCaps;
  readonly #recorders: Recorder[] = [];
  readonly #ids: number[] = [];
  #lastId = 0;

  constructor(limits = defaultCaps) {
    this.#limits = limits;
    this.totals = createTotals(limits);
    for (let i = 0; i < workers; i++) this.#start(i);
  }

  apply(next: Step): void {
    if (next.type === 'record') {
      const { model, ms } = next;
      const usage = { input: ms, output: 1, cached: 0, reasoning: 0 };
      this.#recorder(next.worker).record(
        callRecord({ model, usage, costNanoUsd: ms, durationMs: ms, firstByteMs: ms / 3 }),
      );
    } else if (next.type !== 'merge') {
      this.tell(next.worker);
      if (next.type === 'restart') {
        this.totals.retire(this.#ids[next.worker] as number);
        this.#start(next.worker);
      }
    }
  }

  tell(place: number): void {
    this.totals.update(this.#ids[place] as number, sent(this.#recorder(place).take()));
  }

  tellAll(): void {
    for (let place = 0; place < workers; place++) this.tell(place);
  }

  #recorder(place: number): Recorder {
    return this.#recorders[place] as Recorder;
  }

  #start(place: number): void {
    this.#recorders[place] = createRecorder(gaugeReader({ gateway_open_requests: 1 }), this.#limits);
    this.#ids[place] = ++this.#lastId;
  }
}

/** Every number that must not go down, by a name of its own. */
function growing(metrics: CollectedMetrics): Map<string, number> {
  const all = new Map<string, number>();
  for (const [name] of metrics.counters) {
    for (const [labels, value] of Object.entries(numbers(metrics, name))) all.set(`${name} ${labels}`, value);
  }
  for (const [name, , , sums] of metrics.histograms) {
    for (const [labels, counts] of Object.entries(bucketCounts(metrics, name))) {
      for (const [bucket, count] of counts.entries()) all.set(`${name} ${labels} ${bucket}`, count);
    }
    for (const [row, sum] of sums.entries()) all.set(`${name} sum ${row}`, sum);
  }
  return all;
}

test('all workers together have counted what a naive count has, through any restarts', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const cluster = new Cluster();
      const requests: Record<string, number> = {};
      const input: Record<string, number> = {};
      let calls = 0;
      for (const each of steps) {
        cluster.apply(each);
        if (each.type === 'merge') cluster.totals.merged();
        if (each.type !== 'record') continue;
        const { model, ms } = each;
        const series = `chat ${model} 200 complete`;
        calls++;
        requests[series] = (requests[series] ?? 0) + 1;
        if (ms > 0) input[model] = (input[model] ?? 0) + ms;
      }
      cluster.tellAll();
      const merged = cluster.totals.merged();
      t.same(numbers(merged, 'gateway_requests_total'), requests);
      t.same(numbers(merged, 'gateway_cost_usd_total'), input);
      const tokens = numbers(merged, 'gateway_tokens_total');
      for (const [model, count] of Object.entries(input)) t.equal(tokens[`${model} input`], count);
      const durations = bucketCounts(merged, 'gateway_request_duration_seconds').chat ?? [];
      t.equal(
        durations.reduce((a, b) => a + b, 0),
        calls,
      );
      t.same(numbers(merged, 'gateway_open_requests', 'gauges'), { '': workers });
    }),
  );
});

/** The sum of each family, of counters and of what histograms have counted. */
function sums(metrics: CollectedMetrics): Map<string, number> {
  const all = new Map<string, number>();
  for (const [name, , numbers] of [...metrics.counters, ...metrics.histograms])
    all.set(
      name,
      numbers.reduce((a, b) => a + b, 0),
    );
  return all;
}

test('nothing goes down from one merge to the next; where there is no room for all series, their sum does not', async () => {
  const limits = fc.constantFrom(defaultCaps, { numbers: 5, histograms: 3 });
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const cluster = new Cluster(limit);
      const read = limit === defaultCaps ? growing : sums;
      let before = new Map<string, number>();
      for (const each of steps) {
        cluster.apply(each);
        if (each.type === 'record') continue;
        const now = read(cluster.totals.merged());
        for (const [name, value] of before) assert.ok((now.get(name) ?? -1) >= value, name);
        before = now;
      }
      for (const [name, labels, values] of cluster.totals.merged().counters) {
        assert.ok(values.length <= limit.numbers && labels.length % values.length === 0, name);
      }
    }),
  );
});

test('the sum of all series is kept where they do not fit', async (t) => {
  const cluster = new Cluster({ numbers: 4, histograms: 2 });
  for (let i = 0; i < 60; i++) {
    cluster.apply({ type: 'record', worker: i % workers, model: `model-${i}`, ms: 1 });
    if (i % 20 === 10) cluster.apply({ type: 'restart', worker: i % workers });
  }
  cluster.tellAll();
  const merged = cluster.totals.merged();
  const sum = (name: string) => Object.values(numbers(merged, name)).reduce((a, b) => a + b, 0);
  t.equal(sum('gateway_requests_total'), 60);
  t.equal(sum('gateway_cost_usd_total'), 60);
});

test('busy models take the places of those that were busy once, and the sums stay right', async (t) => {
  const cluster = new Cluster({ numbers: 16, histograms: 16 });
  const record = (from: number, until: number, times: number): void => {
    for (let model = from; model < until; model++)
      for (let time = 0; time < times; time++)
        cluster.apply({ type: 'record', worker: time % workers, model: `model-${model}`, ms: 2 });
    cluster.tellAll();
  };
  const requests = () => numbers(cluster.totals.merged(), 'gateway_requests_total');
  record(0, 20, 1);
  t.equal(Object.keys(requests()).length, 14);
  t.equal(requests()['chat model-3 200 complete'], 1);
  for (let round = 0; round < 5; round++) {
    record(100, 104, 9);
    cluster.totals.merged();
  }
  const now = requests();
  t.ok((now['chat model-103 200 complete'] ?? 0) >= 18, 'what came after it had its place');
  t.equal(now['chat model-3 200 complete'], undefined);
  t.equal(
    Object.values(now).reduce((a, b) => a + b, 0),
    200,
  );
  const firstBytes = bucketCounts(cluster.totals.merged(), 'gateway_first_byte_seconds');
  t.ok('chat model-103' in firstBytes);
  t.equal(
    Object.values(firstBytes)
      .flat()
      .reduce((a, b) => a + b, 0),
    200,
  );
});

test('states of targets are never those of several, however many there are', async (t) => {
  const targets = Array.from({ length: 100 }, (_, index) => ({
    upstream: 'up',
    model: `${index}`,
    state: index === 70 ? ('open' as const) : ('closed' as const),
    inFlight: index >= 90 ? 1 : 0,
    calls: index >= 80 ? index : 0,
  }));
  const totals = createTotals({ numbers: 40, histograms: 8 });
  for (const worker of [1, 2]) {
    const recorder = createRecorder(gaugeReader({}, { targets }), { numbers: 40, histograms: 8 });
    totals.update(worker, sent(recorder.take()));
  }
  const merged = totals.merged();
  const inFlight = numbers(merged, 'gateway_target_in_flight', 'gauges');
  t.same(Object.keys(inFlight), ['up/70', 'up/99', 'up/98', 'up/97', 'up/96', 'up/95', 'up/94', 'up/93']);
  const states = numbers(merged, 'gateway_target_state', 'gauges');
  t.equal(Object.keys(states).length, 32);
  t.equal(states['up/70 open'], 1);
  t.same(numbers(merged, 'gateway_targets', 'gauges'), { closed: 99, cooling: 0, open: 1, 'half-open': 0 });
});

test('fractions never make a counter less by their last digit', async (t) => {
  const totals = createTotals();
  const ms = [100, 200, 300];
  for (const [i, durationMs] of ms.entries()) {
    const recorder = createRecorder(gaugeReader());
    recorder.record(callRecord({ durationMs }));
    totals.update(i, recorder.collect());
  }
  const sum = () =>
    totals
      .merged()
      .histograms.find(([name]) => name === 'gateway_request_duration_seconds')?.[3][0] as number;
  const before = sum();
  // Now the first is added last.
  totals.retire(2);
  totals.retire(1);
  t.ok(sum() >= before);
});

test('a worker that is silent or gone counts on, and its gauges do while it lives', async (t) => {
  const totals = createTotals();
  const recorder = createRecorder(gaugeReader({ gateway_open_requests: 5 }));
  recorder.record(callRecord());
  totals.update(1, recorder.collect());
  for (let i = 0; i < 3; i++) {
    t.same(numbers(totals.merged(), 'gateway_open_requests', 'gauges'), { '': 5 });
    t.same(numbers(totals.merged(), 'gateway_key_requests_total'), { 'team-a 2xx': 1 });
  }
  totals.retire(1);
  totals.retire(1);
  totals.retire(2);
  t.same(numbers(totals.merged(), 'gateway_open_requests', 'gauges'), { '': 0 });
  t.same(numbers(totals.merged(), 'gateway_key_requests_total'), { 'team-a 2xx': 1 });
});

test('gauges add up, or are those of the worst worker, as their families say', async (t) => {
  const totals = createTotals();
  for (const [id, state] of (['closed', 'open'] as const).entries()) {
    const read = gaugeReader(
      { gateway_resident_memory_bytes: 10, gateway_heap_used_bytes: 1 },
      {
        targets: [{ upstream: 'main', model: 'x', state, inFlight: 3, calls: 1 }],
        loopDelay: { p50: 0, p99: 0.25, max: id },
      },
    );
    totals.update(id, sent(createRecorder(read).collect()));
  }
  const merged = totals.merged();
  t.same(numbers(merged, 'gateway_target_in_flight', 'gauges'), { 'main/x': 6 });
  t.same(numbers(merged, 'gateway_resident_memory_bytes', 'gauges'), { '': 20 });
  t.same(numbers(merged, 'gateway_event_loop_delay_seconds', 'gauges'), { p50: 0, p99: 0.25, max: 1 });
  t.match(numbers(merged, 'gateway_target_state', 'gauges'), {
    'main/x closed': 1,
    'main/x open': 1,
    'main/x cooling': 0,
  });
});

test('families that are not known, or have another form, are left out', async (t) => {
  const totals = createTotals();
  totals.update(1, {
    counters: [
      ['gateway_unknown_total', [], [1]],
      ['toString', [], [1]],
      ['gateway_cost_usd_total', ['a', 'b'], [1]],
      ['gateway_retries_total', ['main/x'], [1]],
    ],
    histograms: [['gateway_own_seconds', [], [1, 2], [3]]],
    gauges: [
      ['gateway_open_requests', ['a'], [1]],
      ['gateway_unknown', [], [1]],
    ],
  });
  const merged = totals.merged();
  t.same(numbers(merged, 'gateway_unknown_total'), {});
  t.same(numbers(merged, 'gateway_cost_usd_total'), {});
  t.same(numbers(merged, 'gateway_retries_total'), { 'main/x': 1 });
  t.same(numbers(merged, 'gateway_open_requests', 'gauges'), { '': 0 });
});
