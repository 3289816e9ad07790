import { setTimeout as pause } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { type CallEnd, pricedConfig } from '../support/billing/calls.js';
import { compare, type Difference } from '../support/billing/compare.js';
import { takenBy } from '../support/billing/kills.js';
import { type CallPlan, drawCall } from '../support/billing/plan.js';
import { makeCalls, operatorsToken, readLines } from '../support/billing/run.js';
import { type BillingUpstream, startBillingUpstream } from '../support/billing/upstream.js';
import { eventually, seenWithin } from '../support/eventually.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { integersOf, seed } from '../support/seed.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import type { UsageLine } from '../support/usage-gateway.js';

/** What was not lost by a kill is written after this. */
const writtenMs = 1500;

/** Part of the bill that all calls may be off by together. */
const mostOff = 0.001;

interface Stage {
  readonly vendor: BillingUpstream;
  readonly plans: readonly CallPlan[];
  readonly gateways: readonly GatewayProcesses[];
}

async function stage(
  t: Test,
  calls: number,
  hosts: number,
  store: Readonly<Record<string, unknown>>,
): Promise<Stage> {
  const below = integersOf(seed);
  const plans = Array.from({ length: calls }, (_, number) => drawCall(number, below));
  const vendor = await startBillingUpstream(t, (number) => plans[number] as CallPlan);
  const file = {
    ...pricedConfig(vendor.origin, store, operatorsToken),
    secret: 'the same for all hosts of the test',
  };
  const env = { LOG_LEVEL: 'info' };
  const gateways = await Promise.all(
    Array.from({ length: hosts }, () => startGateway(t, { workers: 2, file, env })),
  );
  for (const gateway of gateways) t.teardown(() => gateway.end());
  return { vendor, plans, gateways };
}

/** The lines of all calls, as soon as each that was answered has one, and each video that came to nothing another. */
function allLines(at: Stage, ends: readonly CallEnd[]): Promise<readonly UsageLine[]> {
  const ids = ends.flatMap(({ requestId, taskId, number }) => {
    const isPutRight = taskId !== undefined && at.plans[number]?.failure === 'fails later';
    return [requestId ?? [], isPutRight ? taskId : []].flat();
  });
  const fits = (lines: readonly UsageLine[]): boolean => {
    const known = new Set(lines.map(({ requestId }) => requestId));
    return ids.every((id) => known.has(id));
  };
  return eventually(() => readLines(at.gateways[0] as GatewayProcesses), {
    what: 'a line of every call',
    fits,
    everyMs: 500,
  });
}

/** Makes all calls, and holds the bill against the ledger: they agree to the unit. */
async function agree(t: Test, at: Stage): Promise<void> {
  const { vendor, plans } = at;
  const ends = await makeCalls(at.gateways, at.plans);
  const failed = ends.filter(({ status, hasLeft, number }) => {
    const mayFail = plans[number]?.failure !== null;
    return !hasLeft && !mayFail && (status === 0 || status >= 400);
  });
  t.strictSame(failed, [], 'no call fails that its upstream would have served');
  await eventually(() => vendor.open === 0, { what: 'an end of every request upstream' });
  const { different, doubled, exact, near, ...money } = compare(vendor.bill, await allLines(at, ends), ends);
  t.comment(`exact ${exact}, near ${near}`, money);
  t.strictSame(different.slice(0, 10), [], 'bill and ledger agree');
  t.ok(exact >= plans.length * 0.9, 'nearly all to the unit');
  t.ok(near > 0, 'some are estimated');
  t.strictSame(doubled, [], 'nothing is charged twice');
  const off = Math.abs(money.chargedNanoUsd - money.billedNanoUsd) / money.billedNanoUsd;
  t.ok(off < mostOff, 'all in all they agree, estimates among them');
  t.ok(
    vendor.bill.some(({ end }) => end === 'failed'),
    'attempts that tell their usage and fail are billed',
  );
}

test('a vendor and the ledger agree on what calls of every kind come to', { timeout: 300_000 }, async (t) => {
  await agree(t, await stage(t, 2000, 1, { kind: 'embedded', path: temporaryFolder(t) }));
});

const ofHosts = { timeout: 300_000, skip: skipWithoutPostgres() };
test('so they do on two hosts that share a database', ofHosts, async (t) => {
  const { url } = await postgresFor(t);
  await agree(t, await stage(t, 1000, 2, { kind: 'postgres', url }));
});

test('a worker that is killed loses what ended just before, and nothing else', {
  timeout: 300_000,
}, async (t) => {
  const at = await stage(t, 1000, 1, { kind: 'embedded', path: temporaryFolder(t) });
  const { vendor, gateways, plans } = at;
  let killedAt = 0;
  const kill = async (): Promise<void> => {
    await eventually(() => vendor.bill.length > plans.length / 2);
    const [victim = 0] = (gateways[0] as GatewayProcesses).workerPids();
    process.kill(victim, 'SIGKILL');
    killedAt = performance.now();
  };
  const [ends] = await Promise.all([makeCalls(at.gateways, at.plans), kill()]);
  // What it had begun to serve is told by nobody; the other calls have their lines once the last pages are written.
  await eventually(() => vendor.open === 0, { what: 'an end of every request upstream' });
  await pause(writtenMs);
  const kills = [{ at: killedAt, host: 0 }];
  const look = async () => {
    const lines = await readLines(gateways[0] as GatewayProcesses);
    const found = compare(vendor.bill, lines, ends);
    const isUnexplained = (each: Difference) => takenBy(each, kills, ends) === undefined;
    return { ...found, unexplained: found.different.filter(isUnexplained) };
  };
  // A price that the worker was about to put right is put right by another, once its claim to do so has run out.
  const { different, doubled, exact, unexplained } = await seenWithin(look, {
    fits: ({ unexplained: left }) => left.length === 0,
    withinMs: 30_000,
    everyMs: 500,
  });
  t.comment(`exact ${exact}, of the kill ${different.length - unexplained.length}`);
  t.strictSame(unexplained.slice(0, 10), [], 'the kill explains all differences');
  t.strictSame(doubled, [], 'nothing is charged twice');
});
