import { type Test, test } from 'tap';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { startRelay } from '../support/relay.js';
import { simulate } from '../support/simulator.js';
import { chatBody, startUsageGateway, type UsageGateway } from '../support/usage-gateway.js';

const skip = skipWithoutPostgres();

/** Clients that call one after the other until they are stopped. */
interface Load {
  /** Request ids of the calls that were served. */
  readonly served: Set<string>;
  /** Statuses of those that were not. */
  readonly others: number[];
  stop(): Promise<void>;
}

function startLoad(gateways: readonly UsageGateway[]): Load {
  const served = new Set<string>();
  const others: number[] = [];
  let isOver = false;
  const client = async (usage: UsageGateway): Promise<void> => {
    while (!isOver) {
      const answer = await usage.post('/v1/chat/completions', chatBody('hello'));
      await answer.text();
      if (answer.status === 200) served.add(answer.headers.get('x-request-id') ?? '');
      else others.push(answer.status);
    }
  };
  const clients = gateways.flatMap((usage) => [client(usage), client(usage)]);
  return {
    served,
    others,
    async stop() {
      isOver = true;
      await Promise.all(clients);
    },
  };
}

/** Messages that gateways have logged, by which they tell of the store. */
function told({ gateway }: UsageGateway, start: string): number {
  return gateway.logs.filter((line) => line.includes(`"msg":"${start}`)).length;
}

const gone = 'the store of limits cannot be reached';
const back = 'the store of limits is reachable again';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Holds that each call that was served is in the ledger once, and nothing else is. */
async function holdsOnce(t: Test, usage: UsageGateway, { served, others }: Load): Promise<void> {
  t.strictSame(others, [], 'every call was served');
  const lines = await usage.linesOf(...served);
  t.equal(lines.length, served.size);
  const all = await usage.lines();
  t.equal(all.length, served.size, 'no line is doubled');
  const { total } = await usage.report();
  t.equal(total.calls, served.size);
  const cost = all.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0);
  t.equal(Math.round(total.costUsd * 1e9), cost, 'lines and sums agree');
}

test('a database that is killed again and again under load charges each call once', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const { url: upstreamUrl } = await simulate(t);
  const store = { kind: 'postgres', url: postgres.url, timeoutMs: 3000 };
  const start = () => startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  const gateways = await Promise.all([start(), start()]);
  const load = startLoad(gateways);
  for (let round = 0; round < 3; round++) {
    await pause(700);
    await postgres.crash();
    await pause(300);
    await postgres.restart();
  }
  await pause(500);
  await load.stop();
  t.comment(`${load.served.size} calls`);
  await holdsOnce(t, gateways[0], load);
});

test('a network that is cut is told once, serves every call, and what its answers lost is counted once', {
  skip,
}, async (t) => {
  const postgres = await postgresFor(t);
  const relay = await startRelay(t, postgres.port);
  const { url: upstreamUrl } = await simulate(t);
  const url = postgres.url.replace(`${postgres.port}`, `${relay.port}`);
  const store = { kind: 'postgres', url, timeoutMs: 1500 };
  const usage = await startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  const load = startLoad([usage]);
  await pause(1500);
  const before = [told(usage, gone), told(usage, back)];
  relay.cut();
  await usage.gateway.until(() => told(usage, gone) > (before[0] ?? 0));
  await pause(3000);
  t.equal(told(usage, gone), (before[0] ?? 0) + 1);
  relay.mend();
  await usage.gateway.until(() => told(usage, back) > (before[1] ?? 0));
  await pause(500);
  await load.stop();
  t.comment(`${load.served.size} calls`);
  await holdsOnce(t, usage, load);
  t.strictSame([told(usage, gone) - (before[0] ?? 0), told(usage, back) - (before[1] ?? 0)], [1, 1]);
});
