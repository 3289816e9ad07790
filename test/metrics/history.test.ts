import { test } from 'tap';
import { createHistory, historyLength, historyStepMs } from '../../src/metrics/history.js';
import { createRecorder } from '../../src/metrics/recorder.js';
import { createTotals } from '../../src/metrics/totals.js';
import { callRecord } from '../support/call-record.js';
import { gaugeReader } from './samples.js';

const start = 1_700_000_000_000;
const nothing = createTotals().merged();

test('a point tells what happened since the one before', async (t) => {
  const recorder = createRecorder(gaugeReader({ gateway_open_requests: 3, gateway_open_sockets: 2 }));
  const totals = createTotals();
  const history = createHistory();
  const add = (now: number) => {
    totals.update(1, recorder.take());
    return history.add(totals.merged(), now);
  };
  for (let i = 0; i < 100; i++) recorder.record(callRecord());
  t.equal(add(start), null);
  t.same(history.points(), []);

  const usage = { input: 30, output: 20, cached: 10, reasoning: 5 };
  for (let i = 0; i < 8; i++) recorder.record(callRecord({ usage, costNanoUsd: 1_000_000, durationMs: 200 }));
  recorder.record(callRecord({ status: 503, outcome: 'refused', durationMs: 50_000, firstByteMs: -1 }));
  recorder.record(callRecord({ outcome: 'upstream_error', durationMs: 50_000 }));
  recorder.record(callRecord({ outcome: 'refused', durationMs: 50_000 }));
  recorder.record(callRecord({ status: 429, outcome: 'refused', durationMs: 50_000 }));
  const made = add(start + 5000);
  const [point] = history.points();
  t.equal(made, point);
  t.match(point, {
    at: start + 5000,
    seconds: 5,
    requestsPerSecond: 2.4,
    errorsPerSecond: 0.6,
    inputTokensPerSecond: 48,
    outputTokensPerSecond: 32,
    cost: 0.008,
    openRequests: 3,
    openSockets: 2,
  });
  const { p50 = null, p99 = null } = point?.duration ?? {};
  t.ok(p50 !== null && p50 > 0.1 && p50 <= 0.25);
  t.ok(p99 !== null && p99 > 25 && p99 <= 60);
  t.ok((point?.firstByte.p95 ?? 9) <= 0.25);
  const { p99: own = null } = point?.own ?? {};
  t.ok(own !== null && own > 0.0001 && own <= 0.00025);

  add(start + 10_000);
  t.match(history.points().at(-1), {
    requestsPerSecond: 0,
    cost: 0,
    firstByte: { p50: null, p95: null, p99: null },
    duration: { p50: null },
    own: { p99: null },
  });
});

test('the end of a worker is no traffic, and what it told last counts once', async (t) => {
  const totals = createTotals();
  const history = createHistory();
  const worker = () => createRecorder(gaugeReader());
  const [first, second] = [worker(), worker()];
  history.add(totals.merged(), start);
  for (let i = 0; i < 10; i++) first.record(callRecord());
  totals.update(1, first.take());
  // A scrape in between takes the same counts.
  totals.merged();
  t.equal(history.add(totals.merged(), start + 5000)?.requestsPerSecond, 2);
  totals.retire(1);
  for (let i = 0; i < 5; i++) second.record(callRecord());
  totals.update(2, second.take());
  totals.update(2, second.take());
  t.equal(history.add(totals.merged(), start + 10_000)?.requestsPerSecond, 1);
  t.equal(history.add(totals.merged(), start + 15_000)?.requestsPerSecond, 0);
});

test('only the last hour is remembered, the oldest first', async (t) => {
  const history = createHistory();
  for (let i = 0; i <= historyLength * 2 + 7; i++) history.add(nothing, start + i * historyStepMs);
  const points = history.points();
  t.equal(points.length, historyLength);
  t.equal(points.at(-1)?.at, start + (historyLength * 2 + 7) * historyStepMs);
  t.ok(points.every(({ at }, i) => i === 0 || at - (points[i - 1]?.at ?? 0) === historyStepMs));
});

test('a call that is too early is passed over, and one that is late makes one point', async (t) => {
  const history = createHistory();
  for (const after of [0, 1, 4000, 4990, 5100, 9995, 40_000]) history.add(nothing, start + after);
  t.same(
    history.points().map(({ at, seconds }) => [at - start, seconds]),
    [
      [4990, 4.99],
      [9995, 5.005],
      [40_000, 30.005],
    ],
  );
});

test('a clock that is set back takes the points of the time to come with it', async (t) => {
  const history = createHistory();
  for (let i = 0; i <= 10; i++) history.add(nothing, start + i * historyStepMs);
  history.add(nothing, start + 3 * historyStepMs + 1);
  t.same(
    history.points().map(({ at }) => (at - start) / historyStepMs),
    [1, 2, 3],
  );
  history.add(nothing, start + 4 * historyStepMs + 1);
  t.equal(history.points().length, 4);
  history.add(nothing, 0);
  t.same(history.points(), []);
});
