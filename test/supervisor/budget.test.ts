import { readFileSync } from 'node:fs';
import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { writeConfig } from '../support/gateway-processes.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { simulate } from '../support/simulator.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { chatBody, startUsageGateway, type UsageGateway } from '../support/usage-gateway.js';
import { budgetConfig, hammer, type Seen } from './budget-clients.js';

const skip = skipWithoutPostgres();
const usd = 1;
const budget = usd * 1e9;

async function stage(t: Test) {
  const folder = temporaryFolder(t);
  const simulator = await simulate(t);
  const store = { kind: 'embedded', path: folder };
  return (workers: number) =>
    startUsageGateway(t, { upstreamUrl: simulator.url, store, workers, config: budgetConfig(usd) });
}

/** What the ledger says, once all of so many calls are in it. */
async function ledgerCost(usage: UsageGateway, served: number): Promise<number> {
  const read = async () => (await usage.lines()).filter(({ status }) => status === 200);
  const lines = await eventually(read, { fits: ({ length }) => length >= served, everyMs: 50 });
  return lines.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0);
}

test('a budget holds over workers, a stop and a start, and a raised one is there after a reload', async (t) => {
  const start = await stage(t);
  const first = await start(3);
  const seen = await hammer([first]);
  t.comment(JSON.stringify(seen));
  t.ok(seen.cost <= budget && seen.cost >= 0.9 * budget, `${seen.cost}`);
  t.equal(await ledgerCost(first, seen.served), seen.cost);
  t.strictSame(await first.gateway.stop(), { code: 0, signal: null });

  const second = await start(1);
  const again: Seen = { cost: 0, served: 0, refused: 0, failed: 0 };
  await hammer([second], again, () => again.refused > 20);
  // What was left of the budget for no whole call may be enough for one more.
  t.ok(again.served <= 10 && seen.cost + again.cost <= budget, JSON.stringify(again));
  t.ok(again.refused > 0);

  const path = second.gateway.configPath as string;
  const config = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeConfig(path, { ...config, ...budgetConfig(1.5 * usd) });
  second.gateway.kill('SIGHUP');
  await second.gateway.untilLogged(({ msg }) => msg === 'config reloaded');
  const raised = await hammer([second]);
  const cost = seen.cost + again.cost + raised.cost;
  t.ok(cost <= 1.5 * budget && cost >= 1.35 * budget, `${cost}`);
});

test('a budget that is used up within seconds is told in the log and in the metrics', async (t) => {
  const start = await stage(t);
  const usage = await start(1);
  const { gateway, admin } = usage;
  await hammer([usage]);
  for (const percent of [50, 80])
    await gateway.untilLogged((entry) => entry.percent === percent && `${entry.budget}`.startsWith('key:'));
  const metrics = await (await admin('/metrics')).text();
  t.match(metrics, /gateway_budget_used_ratio\{owner="key",name="load"\} (?:1|0\.9\d*)\n/);
});

test('what is killed under load, a worker and then the whole gateway, does not give the budget a second time', async (t) => {
  const start = await stage(t);
  const first = await start(2);
  const seen: Seen = { cost: 0, served: 0, refused: 0, failed: 0 };
  let isOver = false;
  const hammering = hammer([first], seen, () => isOver);
  await eventually(() => seen.cost >= 0.1 * budget, { everyMs: 5 });
  process.kill(first.gateway.workerPids()[0] as number, 'SIGKILL');
  await eventually(() => seen.cost >= 0.3 * budget, { everyMs: 5 });
  await first.gateway.end();
  isOver = true;
  await hammering;
  const before = seen.cost;

  const second = await start(1);
  const lines = await second.lines();
  t.equal(new Set(lines.map(({ requestId }) => requestId)).size, lines.length, 'no line is doubled');
  const after = await hammer([second]);
  t.comment(JSON.stringify([seen, after]));
  t.ok(before + after.cost <= budget && before + after.cost >= 0.6 * budget, `${before} and ${after.cost}`);
  t.ok(after.refused > 0);
});

test('two gateways on one PostgreSQL share a budget', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const simulator = await simulate(t);
  const store = { kind: 'postgres', url: postgres.url };
  const start = () =>
    startUsageGateway(t, { upstreamUrl: simulator.url, store, workers: 2, config: budgetConfig(usd) });
  const gateways = await Promise.all([start(), start()]);
  const seen = await hammer(gateways);
  t.comment(JSON.stringify(seen));
  t.ok(seen.cost <= budget && seen.cost >= 0.85 * budget, `${seen.cost}`);
  t.equal(await ledgerCost(gateways[0] as UsageGateway, seen.served), seen.cost);
});

test('a video takes what its length costs, and while the store is gone nobody is told that money is used up', {
  skip,
}, async (t) => {
  const postgres = await postgresFor(t);
  const simulator = await simulate(t);
  const store = { kind: 'postgres', url: postgres.url, timeoutMs: 3000 };
  const usage = await startUsageGateway(t, {
    upstreamUrl: simulator.url,
    store,
    workers: 1,
    config: budgetConfig(usd),
  });
  const status = async (path: string, body: unknown): Promise<number> => {
    const answer = await usage.post(path, body);
    await answer.text();
    return answer.status;
  };
  const film = (seconds: string) => status('/v1/videos', { model: 'm', prompt: 'a cat', seconds });
  t.equal(await film('8'), 200);
  t.equal(await film('8'), 429);
  // Half of what is left.
  const talk = () => status('/v1/chat/completions', chatBody('hi', { max_tokens: 400 }));
  await postgres.crash();
  t.equal(await talk(), 503);
  t.equal(await talk(), 503);
  await postgres.restart();
  t.equal(await eventually(talk, { fits: (status) => status !== 503, everyMs: 50 }), 200);
});
