import { test } from 'tap';
import { type CallEnd, makeCall, pricedConfig } from '../support/billing/calls.js';
import { compare } from '../support/billing/compare.js';
import { type CallPlan, drawCall } from '../support/billing/plan.js';
import { startBillingUpstream } from '../support/billing/upstream.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { integersOf, seed } from '../support/seed.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import type { UsageLine } from '../support/usage-gateway.js';

const token = 'a-token-of-operators';
const calls = 2000;
const clients = 16;

test('a vendor and the ledger agree on what calls of every kind come to', { timeout: 500_000 }, async (t) => {
  const below = integersOf(seed);
  const plans = Array.from({ length: calls }, (_, number) => drawCall(number, below));
  const planOf = (number: number): CallPlan => plans[number] as CallPlan;
  const vendor = await startBillingUpstream(t, planOf);
  const store = { kind: 'embedded', path: temporaryFolder(t) };
  const file = pricedConfig(vendor.origin, store, token);
  const gateway = await startGateway(t, { workers: 2, file, env: { LOG_LEVEL: 'info' } });
  t.teardown(() => gateway.end());
  const ends = await makeAll(gateway.baseUrl, plans);
  const failed = ends.filter(
    ({ status, hasLeft, number }) => !hasLeft && status >= 400 && !isRefused(planOf(number)),
  );
  t.strictSame(
    failed.map(({ number, status }) => ({ status, plan: planOf(number) })),
    [],
    'calls that should not fail',
  );
  await eventually(() => vendor.open === 0, { what: 'an end of every request upstream' });
  const lines = await allLines(await gateway.adminUrl(), ends, planOf);
  const { unexplained, exact, near, billedNanoUsd, chargedNanoUsd } = compare(
    vendor.bill,
    lines,
    ends,
    planOf,
  );
  t.comment(
    `exact ${exact}, near ${near}, billed ${billedNanoUsd / 1e9} USD, charged ${chargedNanoUsd / 1e9} USD`,
  );
  t.equal(unexplained.length, 0, unexplained.slice(0, 10).join('\n'));
  t.ok(exact > calls * 0.7, 'most lines are exact');
});

function isRefused(plan: CallPlan): boolean {
  return plan.failure !== null;
}

async function makeAll(baseUrl: string, plans: readonly CallPlan[]): Promise<readonly CallEnd[]> {
  const ends: CallEnd[] = [];
  const waiting = [...plans];
  const client = async (): Promise<void> => {
    for (let plan = waiting.pop(); plan !== undefined; plan = waiting.pop())
      ends.push(await makeCall(baseUrl, plan));
  };
  await Promise.all(Array.from({ length: clients }, client));
  return ends;
}

/** The lines of all calls, as soon as each that was answered has one, and each video that came to nothing another. */
function allLines(
  adminUrl: string,
  ends: readonly CallEnd[],
  planOf: (number: number) => CallPlan,
): Promise<readonly UsageLine[]> {
  const ids = ends.flatMap(({ requestId, taskId, number }) => {
    const failsLater = planOf(number).failure === 'fails later';
    return [requestId ?? [], failsLater && taskId !== undefined ? taskId : []].flat();
  });
  const look = async (): Promise<readonly UsageLine[]> => {
    const answer = await fetch(`${adminUrl}/usage/lines`, { headers: { authorization: `Bearer ${token}` } });
    const texts = (await answer.text()).split('\n').filter((line) => line !== '');
    return texts.map((line) => JSON.parse(line) as UsageLine);
  };
  const fits = (lines: readonly UsageLine[]): boolean => {
    const known = new Set(lines.map(({ requestId }) => requestId));
    return ids.every((id) => known.has(id));
  };
  return eventually(look, { what: 'a line of every call', fits, everyMs: 500 });
}
