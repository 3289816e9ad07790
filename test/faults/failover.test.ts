import { test } from 'tap';
import { failover, unexcusedOf } from '../stress/failover.js';
import { describeFailures } from '../support/load/load.js';

const plan = {
  requestsPerSecond: 200,
  seconds: 4,
  illAtSeconds: 1,
  wellAtSeconds: 2,
  lastSeconds: 1,
  // A busy machine is not what is told here.
  deadlineMs: 60_000,
};

for (const illness of ['killed', 'failing'] as const) {
  test(`no client notices that one of two targets is ${illness} for a while`, async (t) => {
    const { due, answers, failures, latenciesMs, counted, shares } = await failover({ ...plan, illness });
    t.equal(answers, due, 'every request has its answer');
    const unexcused = unexcusedOf(illness, failures);
    t.equal(unexcused.length, 0, describeFailures(unexcused));
    t.equal(counted.good, latenciesMs.length, 'the gateway counts what the clients count');
    t.equal(counted.failed, failures.length - unexcused.length);
    t.ok(counted.retries > 0);
    // Half of them, but for the whims of a busy machine.
    t.ok(shares.last > 0.1, `its share is ${shares.last} again`);
  });
}
