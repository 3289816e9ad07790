import { setTimeout as pause } from 'node:timers/promises';
import t, { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway } from '../support/gateway.js';
import { open, readAnswer } from '../support/raw-client.js';
import { openRaw } from '../support/raw-socket.js';
import { closeOf, openClient, startRealtimeUpstream, upgradeRequest } from '../support/realtime.js';

const config = {
  timeouts: { drainMs: 60_000 },
  upstreams: { simulator: { kind: 'simulator' } },
  models: {
    m: { protocols: ['realtime'], targets: [{ upstream: 'simulator', model: 'sim-realtime' }] },
    r: { protocols: ['responses'], targets: [{ upstream: 'simulator', model: 'sim-text' }] },
  },
  groups: { default: { models: ['*'] } },
  keys: [{ id: 'test', hash: hashKey('sk-test'), groups: ['default'] }],
};

for (const workers of [1, 2]) {
  test(`clients that come back as soon as they are told to leave hold up no drain of ${workers}`, async (t) => {
    const gateway = await startGateway(t, { workers, file: config });
    t.teardown(() => gateway.end());
    let exited = false;
    gateway.exited.then(() => {
      exited = true;
    });
    const codes: number[] = [];
    let back = 0;
    const stay = async (): Promise<void> => {
      for (let round = 0; ; round++) {
        try {
          const raw = await openRaw(gateway.port, { path: '/v1/responses' });
          if (round > 0) back++;
          if (round === 0) connected();
          codes.push(await raw.closed);
        } catch {
          if (exited) return;
          await pause(5);
        }
      }
    };
    let left = 20;
    let connected = (): void => {};
    const all = new Promise<void>((resolve) => {
      connected = () => {
        if (--left === 0) resolve();
      };
    });
    const clients = Array.from({ length: 20 }, () => stay());
    await all;
    gateway.kill('SIGTERM');
    t.strictSame(await gateway.exited, { code: 0, signal: null });
    await Promise.all(clients);
    t.ok(codes.filter((code) => code === 1012).length >= 20, `closed with ${codes.join(', ')}`);
    t.equal(back, 0, 'nobody was let in again');
  });
}

test('a session that is asked for on a connection from before the drain is refused, and one under way ends at once', async (t) => {
  let accept = (): void => {};
  const asked = new Promise<void>((resolve) => {
    accept = resolve;
  });
  let goOn = (): void => {};
  const upstream = await startRealtimeUpstream(t);
  const slow = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { createServer } = await import('node:net');
  const { connect } = await import('node:net');
  // Holds the upgrade back until the gateway drains.
  const front = createServer((socket) => {
    socket.once('data', async (data) => {
      accept();
      await slow;
      const to = connect(Number(new URL(upstream.url).port), '127.0.0.1');
      to.write(data);
      to.pipe(socket).pipe(to);
      to.on('error', () => {});
      socket.on('error', () => {});
    });
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  t.teardown(() => front.close());
  const { port: frontPort } = front.address() as { port: number };
  const { port, gateway } = await startGateway(t, {
    upstreams: [`http://127.0.0.1:${frontPort}/v1`],
    protocols: ['realtime'],
  });
  const models = 'GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-test\r\n\r\n';
  const [kept, asking] = [await open(port, models), await open(port, models)];
  t.equal((await readAnswer(kept)).status, 200);
  const opening = openClient(t, port);
  await asked;
  const drained = gateway.drain(3000);
  // The drain has begun when an answer asks to close the connection; until then it may be let in.
  while (!/^connection: close$/im.test((await readAnswer(asking)).head)) asking.write(models);
  kept.write(upgradeRequest());
  t.equal((await readAnswer(kept)).status, 503);
  goOn();
  const client = await opening;
  t.equal((await closeOf(client.socket)).code, 1012);
  await drained;
});

t.end();
