import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { postJson } from '../support/post-json.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { chatBody } from '../support/usage-gateway.js';

const token = 'the-token-of-the-operators';
const spender = 'sk-of-the-one-that-spends';
const budget = 1e9;
const nanosPerToken = 2_000_000;

/** Starts a gateway of which a key may spend a dollar. */
function startHost(t: Test, postgres: PostgresServer): Promise<GatewayProcesses> {
  return startGateway(t, {
    workers: 1,
    file: {
      store: { kind: 'postgres', url: postgres.url },
      secret: sharedSecret,
      admin: { port: 0, token },
      upstreams: { local: { kind: 'simulator' } },
      models: {
        talk: {
          protocols: ['chat'],
          targets: [{ upstream: 'local', model: 'sim-text' }],
          price: { input: 2000, output: 2000 },
        },
      },
      groups: { default: { models: ['*'] } },
      keys: [
        { id: 'spender', hash: hashKey(spender), groups: ['default'], budget: { usd: 1, per: 'month' } },
      ],
    },
  });
}

/** @returns the status, and what the answer has cost in nano-dollars */
async function chat({ baseUrl }: GatewayProcesses, key: string) {
  const answer = await postJson(
    `${baseUrl}/v1/chat/completions`,
    chatBody('[[fault:latency=0 rate=0]] hi', { max_tokens: 10 }),
    { authorization: `Bearer ${key}`, connection: 'close' },
  );
  const { usage } = (await answer.json()) as { usage?: { total_tokens: number } };
  return { status: answer.status, cost: (usage?.total_tokens ?? 0) * nanosPerToken };
}

async function operate(
  host: GatewayProcesses,
  method: string,
  path: string,
  body: object,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${await host.adminUrl()}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Record<string, unknown>;
}

test('a database that is restored from an older backup knows again what was spent and which keys were revoked', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const postgres = await postgresFor(t);
  const [here, there] = await Promise.all([startHost(t, postgres), startHost(t, postgres)]);
  const { key } = await operate(here, 'POST', '/keys', { id: 'leaked', groups: ['default'] });
  const leaked = String(key);
  let cost = 0;
  const spend = async (host: GatewayProcesses): Promise<number> => {
    const answer = await chat(host, spender);
    cost += answer.cost;
    return answer.status;
  };
  await eventually(async () => (await chat(there, leaked)).status === 200);
  await eventually(async () => (await spend(here)) === 200);
  const dump = postgres.dump('gateway');

  await operate(here, 'DELETE', '/keys/leaked', {});
  await eventually(async () => (await chat(there, leaked)).status === 401);
  // What each of them has left is too little for a call, and what the account has left, too.
  await eventually(async () => (await spend(here)) === 429 && (await spend(there)) === 429);
  const spent = () => Number(postgres.query('SELECT sum(reserved_nano_usd) FROM gateway.budgets'));
  const revoked = () =>
    postgres.query(`SELECT value::jsonb->>'revokedAt' IS NOT NULL FROM gateway.records
WHERE collection = 'managed-keys'`);
  t.ok(cost > 0.8 * budget, `${cost}`);

  await eventually(() => {
    try {
      postgres.restore('gateway', dump);
      return true;
    } catch (error) {
      // A statement of a gateway and the restore may each wait for what the other one has.
      if (/deadlock/.test(String(error))) return false;
      throw error;
    }
  });
  await eventually(() => revoked() === 't' && spent() >= cost);
  await Promise.all([here.stop(), there.stop()]);
  const next = await startHost(t, postgres);
  // A store that is slow for a moment tells nothing.
  const decided = await eventually(() => chat(next, leaked), { fits: ({ status }) => status !== 503 });
  t.equal(decided.status, 401);
  // What was left at either of them may be enough for a call together.
  await eventually(() => spend(next), { fits: (status) => status === 429 });
  t.ok(cost <= budget, `${cost}`);
});
