import { readFileSync } from 'node:fs';
import t, { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';
import { Refused, refusalOf, type SessionOptions } from '../support/realtime.js';
import { type EventClient, openEvents, respond, says, writes } from '../support/realtime-events.js';

/** Within this a client has to hear of what happened to its session: long before a ping would tell. */
const noticeMs = 10_000;
/** How long a process that was killed may take to be there again. */
const restartMs = 20_000;
const tryAgainMs = 50;

function config(keys: readonly string[], timeouts: object = {}) {
  return {
    timeouts,
    upstreams: { simulator: { kind: 'simulator' } },
    models: {
      m: { protocols: ['realtime'], targets: [{ upstream: 'simulator', model: 'sim-realtime' }] },
    },
    groups: { default: { models: ['*'] } },
    keys: keys.map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
  };
}

const withKey = (key: string): SessionOptions => ({ headers: { authorization: `Bearer ${key}` } });
const env = { SIMULATOR_LATENCY_MS: '0', SIMULATOR_TOKENS_PER_SECOND: '0' };

async function start(t: Test, given: unknown): Promise<GatewayProcesses> {
  const gateway = await startGateway(t, { workers: 1, file: given, env });
  t.teardown(async () => {
    await gateway.end();
  });
  return gateway;
}

const drainMs = 4000;
const gateway = await start(t, config(['sk-one', 'sk-two'], { drainMs }));

function session(t: Test, key = 'sk-one', at = gateway): Promise<EventClient> {
  return openEvents(t, at.port, withKey(key));
}

/** Asks for a turn. @returns what is answered, once all of it is there */
async function turn({ log, send }: EventClient, text: string): Promise<string> {
  send(writes(false), says(text), respond);
  const { response } = await log.next('response.done');
  return response.output[0].content[0].text;
}

/** The process of the simulator: the primary's child that is no worker. */
function simulatorOf({ pid, workerPids }: GatewayProcesses): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  const others = children.filter((child) => !workerPids().includes(child));
  if (others.length !== 1) throw new Error(`the simulator is one of ${others.join(', ')}`);
  return others[0] as number;
}

/** Opens a session as soon as one can be opened. */
function reconnected(t: Test): Promise<EventClient> {
  const opened = async (): Promise<EventClient | null> => {
    try {
      return await session(t);
    } catch (error) {
      if (error instanceof Refused && error.status !== 502) throw error;
      return null;
    }
  };
  return eventually(opened, { what: 'a new session', withinMs: restartMs, everyMs: tryAgainMs });
}

test('the death of the upstream closes its sessions with 1011 at once, and new ones follow', async (t) => {
  const idle = await Promise.all(Array.from({ length: 5 }, () => session(t)));
  const busy = await Promise.all(Array.from({ length: 5 }, () => session(t)));
  for (const client of busy) {
    client.send(writes(false), says('[[fault:silent=60 after=5]] wait'), respond);
    await client.log.next('response.output_text.delta');
  }
  const killedAt = performance.now();
  process.kill(simulatorOf(gateway), 'SIGKILL');
  for (const client of [...idle, ...busy]) {
    t.match(await client.closed, { code: 1011, reason: String });
    t.match(client.log.events.at(-1), { type: 'error', error: { type: 'server_error' } });
  }
  const noticed = performance.now() - killedAt;
  t.ok(noticed < noticeMs, `closed after ${noticed} ms`);
  t.equal(await turn(await reconnected(t), 'again'), 'Simulated answer to: again');
});

test('a reload leaves sessions alone, but for those of a key that it removes, which opens no more', async (t) => {
  const [kept, removed] = await Promise.all([session(t), session(t, 'sk-two')]);
  t.equal(await turn(kept, 'before'), 'Simulated answer to: before');
  writeConfig(gateway.configPath ?? '', config(['sk-one'], { drainMs }));
  gateway.kill('SIGHUP');
  await gateway.untilLogged(({ msg }) => msg === 'config reloaded');
  t.match(await removed.closed, { code: 1008, reason: /revoked/ });
  t.equal(await turn(kept, 'after'), 'Simulated answer to: after');
  t.equal((await refusalOf(t, gateway.port, withKey('sk-two'))).status, 401);
  t.equal(await turn(await session(t), 'other'), 'Simulated answer to: other');
  kept.socket.close(1000);
  t.match(await kept.closed, { code: 1000 });
});

test('the death of a worker ends its sessions without a close frame, and clients can come back', async (t) => {
  const client = await session(t);
  const [old = 0] = gateway.workerPids();
  const killedAt = performance.now();
  process.kill(old, 'SIGKILL');
  t.match(await client.closed, { code: 1006 });
  const noticed = performance.now() - killedAt;
  t.ok(noticed < noticeMs, `closed after ${noticed} ms`);
  await gateway.until(() => gateway.workerPids().length === 1 && gateway.workerPids()[0] !== old);
  t.equal(await turn(await reconnected(t), 'again'), 'Simulated answer to: again');
});

test('a worker that is told to end lets its sessions go on, and restarts what is left at the limit', async (t) => {
  const [ending, staying] = await Promise.all([session(t), session(t)]);
  const [old = 0] = gateway.workerPids();
  const signalledAt = performance.now();
  process.kill(old, 'SIGTERM');
  await gateway.untilLogged(({ msg, worker }) => msg === 'worker drains on its own' && worker === old);
  t.equal(await turn(ending, 'still here'), 'Simulated answer to: still here');
  ending.socket.close(1000);
  t.match(await ending.closed, { code: 1000 });
  t.strictSame(await staying.closed, { code: 1012, reason: 'The gateway restarts.' });
  const lasted = performance.now() - signalledAt;
  // Timers of two processes are compared.
  t.ok(lasted > drainMs - 100, `closed after ${lasted} ms`);
  t.equal(await turn(await reconnected(t), 'again'), 'Simulated answer to: again');
});

test('SIGTERM ends at its limit what sessions are left', async (t) => {
  const draining = await start(t, config(['sk-one'], { drainMs: 500 }));
  const client = await session(t, 'sk-one', draining);
  draining.kill('SIGTERM');
  const { code } = await client.closed;
  t.equal(code, 1012);
  t.strictSame(await draining.exited, { code: 0, signal: null });
});

test('SIGTERM ends at once when the last session has', async (t) => {
  const draining = await start(t, config(['sk-one'], { drainMs: 60_000 }));
  const client = await session(t, 'sk-one', draining);
  draining.kill('SIGTERM');
  await draining.untilLogged(({ msg }) => msg === 'draining');
  client.socket.close(1000);
  t.match(await client.closed, { code: 1000 });
  t.strictSame(await draining.exited, { code: 0, signal: null });
});

t.end();
