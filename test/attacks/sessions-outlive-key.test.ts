import t, { type Test, test } from 'tap';
import type { Key, Snapshot } from '../../src/config/types.js';
import { hashKey } from '../../src/keys/secret.js';
import { atOnce } from '../../src/wire/steps.js';
import { startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';
import { closeOf, openClient, startRealtimeUpstream } from '../support/realtime.js';
import { connect } from '../support/responses-socket.js';

const hash = (text: string) => hashKey(text).slice('sha256:'.length);
const withKey = (key: string) => ({ authorization: `Bearer ${key}` });

const hourMs = 3_600_000;

/** A realtime session and a responses socket of a key, and a session of another one. */
async function startSessions(t: Test, expiresAt: string | null = null) {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data) => socket.send(data)),
  );
  const { gateway, snapshot, port, url } = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: { protocols: ['realtime'], targets: [{ upstream: 'u0' }] },
        r: { protocols: ['responses'], targets: [{ upstream: 'u0', responses: true }] },
      },
      groups: { default: { models: ['*'] } },
      keys: [
        {
          id: 'one',
          hash: hashKey('sk-one'),
          groups: ['default'],
          ...(expiresAt === null ? {} : { expiresAt }),
        },
        { id: 'two', hash: hashKey('sk-two'), groups: ['default'] },
      ],
    },
  });
  const realtime = await openClient(t, port, { headers: withKey('sk-one') });
  const responses = await connect(t, url, withKey('sk-one'));
  const other = await openClient(t, port, { headers: withKey('sk-two') });
  return {
    gateway,
    snapshot,
    port,
    upstream,
    realtime: realtime.closed,
    responses: closeOf(responses.socket),
    /** Says that the session of the other key is as before. */
    async otherGoesOn() {
      other.socket.send('still here');
      await other.until(1);
    },
  };
}

function withOne({ keys, ...snapshot }: Snapshot, change: (key: Key) => Key | null): Snapshot {
  const changed = new Map([...keys.values()].map((key) => [key.hash, key]));
  const one = changed.get(hash('sk-one')) as Key;
  const now = change(one);
  changed.delete(one.hash);
  if (now !== null) changed.set(now.hash, now);
  return { ...snapshot, keys: changed, keyIds: new Map([...changed.values()].map((key) => [key.id, key])) };
}

test('a key that a reload removes has no sessions left', async (t) => {
  const sessions = await startSessions(t);
  atOnce(sessions.gateway.swapSteps(withOne(sessions.snapshot, () => null)));
  t.match(await sessions.realtime, { code: 1008, reason: /revoked/ });
  t.match(await sessions.responses, { code: 1008, reason: /revoked/ });
  await sessions.otherGoesOn();
  t.equal((await (await sessions.upstream.arrival(0)).closed).code, 1001, 'the upstream hears of it');
});

test('a key whose secret or whose name a reload has given to another has no sessions left', async (t) => {
  const sessions = await startSessions(t);
  atOnce(
    sessions.gateway.swapSteps(withOne(sessions.snapshot, (key) => ({ ...key, hash: hash('sk-other') }))),
  );
  t.equal((await sessions.realtime).code, 1008);
  t.equal((await sessions.responses).code, 1008);
  const renamed = await startSessions(t);
  atOnce(renamed.gateway.swapSteps(withOne(renamed.snapshot, (key) => ({ ...key, id: 'somebody-else' }))));
  t.equal((await renamed.realtime).code, 1008);
  t.equal((await renamed.responses).code, 1008);
  await renamed.otherGoesOn();
});

/** @returns lets two hours pass, as far as dates tell */
function holdDates(t: Test): () => void {
  const { now } = Date;
  let passed = 0;
  t.intercept(Date, 'now', { value: () => now() + passed });
  return () => {
    passed += 2 * hourMs;
  };
}

test('a key that expires while its sessions are idle has none left', async (t) => {
  const pass = holdDates(t);
  const sessions = await startSessions(t, new Date(Date.now() + hourMs).toISOString());
  pass();
  t.match(await sessions.realtime, { code: 1008, reason: /expired/ });
  t.match(await sessions.responses, { code: 1008, reason: /expired/ });
  await sessions.otherGoesOn();
});

test('a time of expiry that a reload brings forward counts for sessions that are open', async (t) => {
  const sessions = await startSessions(t, new Date(Date.now() + hourMs).toISOString());
  const expiresAt = Date.now() + 300;
  atOnce(sessions.gateway.swapSteps(withOne(sessions.snapshot, (key) => ({ ...key, expiresAt }))));
  t.match(await sessions.realtime, { code: 1008, reason: /expired/ });
  t.match(await sessions.responses, { code: 1008, reason: /expired/ });
  t.ok(Date.now() >= expiresAt, 'not before');
  await sessions.otherGoesOn();
});

test('a time of expiry that a reload puts off lets sessions go on', async (t) => {
  const pass = holdDates(t);
  const sessions = await startSessions(t, new Date(Date.now() + hourMs).toISOString());
  let ended = false;
  sessions.realtime.then(() => {
    ended = true;
  });
  const expiresAt = Date.now() + 3 * hourMs;
  atOnce(sessions.gateway.swapSteps(withOne(sessions.snapshot, (key) => ({ ...key, expiresAt }))));
  pass();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  t.equal(ended, false);
});

test('a realtime session ends when its model is closed to its key, and no other does', async (t) => {
  const sessions = await startSessions(t);
  const open = (key: Key) => new Map([...key.models].filter(([name]) => name !== 'm'));
  atOnce(sessions.gateway.swapSteps(withOne(sessions.snapshot, (key) => ({ ...key, models: open(key) }))));
  t.match(await sessions.realtime, { code: 1008, reason: /model/ });
  await sessions.otherGoesOn();
});

test('a reload that changes nothing of a key, and any number of them, leaves its sessions alone', async (t) => {
  const sessions = await startSessions(t);
  let ended = 0;
  for (const closed of [sessions.realtime, sessions.responses])
    closed.then(() => {
      ended++;
    });
  for (let round = 0; round < 20; round++) atOnce(sessions.gateway.swapSteps({ ...sessions.snapshot }));
  await sessions.otherGoesOn();
  t.equal(ended, 0);
});

test('every worker ends the sessions of a key that SIGHUP removes', async (t) => {
  const config = (keys: readonly string[]) => ({
    upstreams: { simulator: { kind: 'simulator' } },
    models: { m: { protocols: ['realtime'], targets: [{ upstream: 'simulator', model: 'sim-realtime' }] } },
    groups: { default: { models: ['*'] } },
    keys: keys.map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
  });
  const gateway = await startGateway(t, { workers: 2, file: config(['sk-one', 'sk-two']) });
  t.teardown(async () => {
    await gateway.end();
  });
  const dial = (key: string) => openClient(t, gateway.port, { headers: withKey(key) });
  const removed = await Promise.all(Array.from({ length: 12 }, () => dial('sk-one')));
  const kept = await Promise.all(Array.from({ length: 4 }, () => dial('sk-two')));
  let left = kept.length;
  for (const { closed } of kept)
    closed.then(() => {
      left--;
    });
  writeConfig(gateway.configPath ?? '', config(['sk-two']));
  gateway.kill('SIGHUP');
  await gateway.untilLogged(({ msg }) => msg === 'config reloaded');
  for (const { closed } of removed) t.equal((await closed).code, 1008);
  t.equal(left, kept.length);
});

t.end();
