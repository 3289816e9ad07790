import { test } from 'tap';
import { createHistory, historyLength, historyStepMs } from '../../src/metrics/history.js';
import { createRecorder } from '../../src/metrics/recorder.js';
import { createTotals } from '../../src/metrics/totals.js';
import { callFacts, gaugeSources } from './facts.js';

const start = 1_700_000_000_000;
const nothing = createTotals().merged();

test('a point tells what happened since the one before', async (t) => {
  const recorder = createRecorder(gaugeSources({ openRequests: () => 3, openSockets: () => 2 }));
  const totals = createTotals();
  const history = createHistory();
  const add = (now: number) => {
    totals.update(1, recorder.snapshot());
    history.add(totals.merged(), now);
  };
  for (let i = 0; i < 100; i++) recorder.record(callFacts());
  add(start);
  t.same(history.points(0), []);

  const usage = { input: 30, output: 20, cached: 10, reasoning: 5 };
  for (let i = 0; i < 8; i++) recorder.record(callFacts({ usage, costNanos: 1_000_000, durationMs: 200 }));
  recorder.record(callFacts({ status: 503, outcome: 'refused', durationMs: 50_000, firstByteMs: -1 }));
  recorder.record(callFacts({ outcome: 'upstream_error', durationMs: 50_000 }));
  add(start + 5000);
  const [point] = history.points(0);
  t.match(point, {
    at: start + 5000,
    seconds: 5,
    requestsPerSecond: 2,
    errorsPerSecond: 0.4,
    tokensPerSecond: 80,
    cost: 0.008,
    openRequests: 3,
    openSockets: 2,
  });
  const { p50 = null, p99 = null } = point?.duration ?? {};
  t.ok(p50 !== null && p50 > 0.1 && p50 <= 0.25);
  t.ok(p99 !== null && p99 > 25 && p99 <= 60);
  t.ok((point?.firstByte.p95 ?? 9) <= 0.25);

  add(start + 10_000);
  t.match(history.points(start + 5000), [
    {
      requestsPerSecond: 0,
      cost: 0,
      firstByte: { p50: null, p95: null, p99: null },
      duration: { p50: null },
    },
  ]);
});

test('only the last hour is remembered, the oldest first', async (t) => {
  const history = createHistory();
  for (let i = 0; i <= historyLength * 2 + 7; i++) history.add(nothing, start + i * historyStepMs);
  const points = history.points(0);
  t.equal(points.length, historyLength);
  t.equal(points.at(-1)?.at, start + (historyLength * 2 + 7) * historyStepMs);
  t.ok(points.every(({ at }, i) => i === 0 || at - (points[i - 1]?.at ?? 0) === historyStepMs));
  t.equal(history.points(points.at(-4)?.at ?? 0).length, 3);
  t.same(history.points(points.at(-1)?.at ?? 0), []);
});

test('a call that is too early is passed over, and one that is late makes one point', async (t) => {
  const history = createHistory();
  for (const after of [0, 1, 4000, 4990, 5100, 9995, 40_000]) history.add(nothing, start + after);
  t.same(
    history.points(0).map(({ at, seconds }) => [at - start, seconds]),
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
    history.points(0).map(({ at }) => (at - start) / historyStepMs),
    [1, 2, 3],
  );
  history.add(nothing, start + 4 * historyStepMs + 1);
  t.equal(history.points(0).length, 4);
  history.add(nothing, 0);
  t.same(history.points(-1), []);
});
