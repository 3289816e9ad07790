import t, { type Test, test } from 'tap';
import { type FailoverFigures, failover, type Illness } from '../stress/failover.js';
import { describeFailures } from '../suites/load.js';

t.jobs = 3;

async function play(t: Test, illness: Illness): Promise<FailoverFigures> {
  const plan = { requestsPerSecond: 300, seconds: 4, illAtSeconds: 1, wellAtSeconds: 2, lastSeconds: 1 };
  const figures = await failover({ ...plan, illness });
  const { due, answers, latenciesMs, shares, counted, failures } = figures;
  t.equal(answers, due, 'every request has its answer');
  t.ok(shares.before > 0.2, `its share was ${shares.before}`);
  t.ok(shares.last > 0.2, `its share is ${shares.last} again`);
  t.equal(counted.good, latenciesMs.length, 'the gateway counts what the clients count');
  t.equal(counted.failed, failures.length);
  return figures;
}

for (const illness of ['killed', 'failing'] as const) {
  test(`no client notices that one of two targets is ${illness} for a while`, async (t) => {
    const { failures, counted } = await play(t, illness);
    t.equal(failures.length, 0, describeFailures(failures));
    t.ok(counted.retries > 0);
  });
}

test('a target that falls silent fails what it has taken, and no call more', async (t) => {
  const { failures, counted } = await play(t, 'silent');
  t.equal(failures.length, counted.timeouts, describeFailures(failures));
  t.equal(counted.retries, 0);
});
