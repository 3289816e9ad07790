import { test } from 'tap';
import { costOfHour, lastKnown, lines } from '../../src/console/series.js';
import { pointAt } from './page-views.js';

test('lines have one value for each point in range, and the span of the range', async (t) => {
  const points = [0, 5, 10, 15].map((second) => pointAt(second * 1000, { requestsPerSecond: second }));
  const data = lines(points, [({ requestsPerSecond }) => requestsPerSecond, ({ own }) => own.p50], 10_000);
  t.same(data, {
    times: [5, 10, 15],
    rows: [
      [5, 10, 15],
      [null, null, null],
    ],
    from: 5,
    to: 15,
  });
});

test('points with a hole between them are not joined', async (t) => {
  const points = [0, 5, 60, 65].map((second) => pointAt(second * 1000, { openRequests: 1 }));
  const { times, rows } = lines(points, [({ openRequests }) => openRequests], 300_000);
  t.same(times, [0, 5, 32.5, 60, 65]);
  t.same(rows, [[1, 1, null, 1, 1]]);
});

test('a point that came a little late is joined', async (t) => {
  const { times } = lines([pointAt(0), pointAt(11_000)], [() => 1], 300_000);
  t.same(times, [0, 11]);
});

test('no history makes empty lines', async (t) => {
  t.same(lines([], [() => 1, () => 2], 1000), { times: [], rows: [[], []], from: 0, to: 1 });
});

test('the last known value is at most a minute old', async (t) => {
  const latency = (p50: number) => ({ own: { p50, p95: null, p99: null } });
  const quiet = (from: number, to: number) =>
    Array.from({ length: (to - from) / 5 }, (_, index) => pointAt((from + 5 * (index + 1)) * 1000));
  const pick = ({ own }: ReturnType<typeof pointAt>) => own.p50;
  t.equal(lastKnown([pointAt(0, latency(1)), ...quiet(0, 30)], pick), 1);
  t.equal(lastKnown([pointAt(0, latency(1)), ...quiet(0, 70)], pick), null);
  t.equal(lastKnown([], pick), null);
});

test('the cost is that of the last hour only', async (t) => {
  const hour = 3_600_000;
  const points = [pointAt(0, { cost: 8 }), pointAt(1000, { cost: 4 }), pointAt(hour, { cost: 2 })];
  t.equal(costOfHour(points), 6);
  t.equal(costOfHour([]), 0);
});
