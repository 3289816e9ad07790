import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { askLimited, hammer, limitedKey } from './limited-client.js';

const skip = skipWithoutPostgres();

/** Two gateways on one server, as two hosts are. */
async function startHosts(t: Test, postgres: PostgresServer, limits: object, config: object = {}) {
  const start = () =>
    startGateway(t, {
      workers: 2,
      env: { LOG_LEVEL: 'info' },
      file: {
        store: { kind: 'postgres', url: postgres.url },
        secret: sharedSecret,
        admin: { port: 0, token: adminToken },
        upstreams: { local: { kind: 'simulator' } },
        models: { m: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] } },
        groups: { default: { models: ['*'] } },
        keys: [{ id: 'team', hash: hashKey(limitedKey), groups: ['default'], limits }],
        ...config,
      },
    });
  const hosts = await Promise.all([start(), start()]);
  return hosts as [GatewayProcesses, GatewayProcesses];
}

const adminToken = 'token-of-the-operators';

async function storeGauge(host: GatewayProcesses): Promise<string | undefined> {
  const url = await host.adminUrl();
  const headers = { authorization: `Bearer ${adminToken}` };
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  return /^gateway_limits_store_available (\d)$/m.exec(text)?.[1];
}

/** What a host has said of the store since a line of its log: true for each time that it was back. */
function setMembersOf({ logs }: GatewayProcesses, from: number): boolean[] {
  return logs.slice(from).flatMap((line) => {
    const [, what] = /the store of limits (cannot be reached|is reachable again)/.exec(line) ?? [];
    return what === undefined ? [] : [what === 'is reachable again'];
  });
}

/** Resolves when the last that a host has said of the store since a line of its log is that. */
const untilSaid = (host: GatewayProcesses, from: number, isBack: boolean): Promise<unknown> =>
  host.until(() => setMembersOf(host, from).at(-1) === isBack);

test('600 requests per minute are 600 over two hosts and eight clients that hammer both', {
  skip,
}, async (t) => {
  const hosts = await startHosts(t, await postgresFor(t), { requestsPerMinute: 600 });
  const startedAt = performance.now();
  let offered = 0;
  // A busy machine is given longer to offer more, but less than a minute, so that nothing comes back meanwhile.
  const isOver = () => {
    offered += 1;
    const tookMs = performance.now() - startedAt;
    return tookMs > 50_000 || (tookMs > 8000 && offered > 1000);
  };
  const all = await Promise.all(hosts.map((host) => hammer(host.baseUrl, 4, isOver)));
  const answers = all.flat();
  const accepted = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ status }) => status === 429);
  t.comment(`${answers.length} offered, ${accepted} accepted`);
  t.equal(accepted + refused.length, answers.length);
  t.ok(refused.length > 100, 'more was offered');
  t.ok(accepted <= 600, `${accepted} accepted`);
  t.ok(accepted >= 590, `${accepted} accepted`);
  t.ok(refused.every(({ retryAfter }) => Number(retryAfter) >= 1 && Number(retryAfter) <= 61));
  t.ok(all.every((each) => each.some(({ status }) => status === 200)));
  t.comment(`what they said of the store: ${JSON.stringify(hosts.map((host) => setMembersOf(host, 0)))}`);
});

test('what one host has in hand serves the other, and its slots move with the load', { skip }, async (t) => {
  const hosts = await startHosts(t, await postgresFor(t), { requestsPerMinute: 100, concurrent: 2 });
  for (const host of [hosts[0], hosts[1], hosts[0], hosts[1]]) {
    let isServed = false;
    for (let tries = 0; tries < 100 && !isServed; tries++) {
      isServed = (await askLimited(host.baseUrl)).status === 200;
      if (!isServed) await new Promise((resolve) => setTimeout(resolve, 200));
    }
    t.ok(isServed);
  }
  let served = 4;
  for (let offered = 0; offered < 600 && served < 100; offered++) {
    const { status } = await askLimited(hosts[1].baseUrl);
    if (status === 200) served++;
    else await new Promise((resolve) => setTimeout(resolve, 50));
  }
  t.equal(served, 100, 'all of the minute');
  t.equal((await askLimited(hosts[0].baseUrl)).status, 429);
});

test('open: without the store each host counts alone, says so, and comes back', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const [host] = await startHosts(t, postgres, { requestsPerMinute: 50 });
  t.equal((await askLimited(host.baseUrl)).status, 200);
  const from = host.logs.length;
  await postgres.crash();
  await untilSaid(host, from, false);
  const told = await host.untilLogged(({ msg }) => String(msg).startsWith('the store of limits cannot be'));
  t.type(told.err, 'object', 'it says why');
  t.equal(await storeGauge(host), '0');
  let accepted = 1;
  for (let i = 0; i < 60; i++) if ((await askLimited(host.baseUrl)).status === 200) accepted++;
  t.equal(accepted, 50);
  await postgres.restart();
  await untilSaid(host, from, true);
  t.equal(await storeGauge(host), '1');
  t.equal((await askLimited(host.baseUrl)).status, 429);
  t.strictSame(setMembersOf(host, from), [false, true]);
});

test('closed: without the store a host has no more than it was given', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const outage = { rates: 'closed' };
  const [host] = await startHosts(t, postgres, { requestsPerMinute: 50 }, { outage });
  t.equal((await askLimited(host.baseUrl)).status, 200);
  const from = host.logs.length;
  await postgres.crash();
  await untilSaid(host, from, false);
  const answers = [];
  for (let i = 0; i < 60; i++) answers.push(await askLimited(host.baseUrl));
  const accepted = answers.filter(({ status }) => status === 200).length;
  t.ok(accepted < 40, `${accepted} accepted`);
  const last = answers.at(-1);
  t.match(last, { status: 503 });
  t.ok(Number(last?.retryAfter) >= 1);
  await postgres.restart();
  await untilSaid(host, from, true);
  let status = 503;
  for (let tries = 0; tries < 200 && status !== 200; tries++) {
    status = (await askLimited(host.baseUrl)).status;
    if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  t.equal(status, 200);
});
