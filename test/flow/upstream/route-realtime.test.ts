import type { IncomingMessage } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { countersOf } from '../../support/counters.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { openClient, refusalOf, startRealtimeUpstream } from '../../support/realtime.js';

/** An upstream that refuses every upgrade for which a status is given, and counts those that it was asked for. */
async function upstreamThat(t: Test, refuse: (request: IncomingMessage) => string | null) {
  const asked: IncomingMessage[] = [];
  const upstream = await startRealtimeUpstream(
    t,
    () => {},
    (request, socket) => {
      asked.push(request);
      const status = refuse(request);
      if (status === null) return false;
      socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
      return true;
    },
  );
  return { ...upstream, asked };
}

function attempts(gateway: RunningGateway): Record<string, number> {
  return countersOf(gateway, 'gateway_upstream_attempts_total');
}

function inFlight(gateway: RunningGateway): number | undefined {
  const [, , values] =
    gateway.gateway.metrics().gauges.find(([name]) => name === 'gateway_target_in_flight') ?? [];
  return values?.[0];
}

test('a target that refuses the upgrade is followed by the next, and left alone once it is ill', async (t) => {
  for (const refusal of ['503 Busy', '500 Broken', '200 OK']) {
    const broken = await upstreamThat(t, () => refusal);
    const spare = await upstreamThat(t, () => null);
    const gateway = await startGateway(t, {
      upstreams: [broken.url, spare.url],
      protocols: ['realtime'],
      config: { routing: { failures: 2, openMs: 60_000 } },
    });
    for (let i = 0; i < 4; i++) {
      const { socket } = await openClient(t, gateway.port);
      socket.close();
      await gateway.line(({ retries, msg }) => msg === 'request' && retries === (i < 2 ? 1 : 0));
    }
    t.equal(broken.asked.length, 2, refusal);
    t.equal(spare.asked.length, 4);
  }
});

test('a mistake of the caller is told as it came', async (t) => {
  const upstream = await upstreamThat(t, () => '400 Bad');
  const spare = await upstreamThat(t, () => null);
  const gateway = await startGateway(t, { upstreams: [upstream.url, spare.url], protocols: ['realtime'] });
  t.equal((await refusalOf(t, gateway.port)).status, 400);
  t.equal(spare.asked.length, 0);
});

test('when no target is left, 503 says when to come again, and no place is held', async (t) => {
  const upstreams = await Promise.all([0, 1].map(() => upstreamThat(t, () => '500 Broken')));
  const gateway = await startGateway(t, {
    upstreams: upstreams.map(({ url }) => url),
    protocols: ['realtime'],
    config: { sockets: { perKey: 1 }, routing: { failures: 1, openMs: 60_000 } },
  });
  t.equal((await refusalOf(t, gateway.port)).status, 500);
  for (let i = 0; i < 3; i++) t.equal((await refusalOf(t, gateway.port)).status, 503);
  t.strictSame(attempts(gateway), { 'u0/m status_5xx': 1, 'u1/m status_5xx': 1 });
});

test('a session is under way at its target until it ends, and one that breaks off is a failure', async (t) => {
  const upstream = await upstreamThat(t, () => null);
  const gateway = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const first = await openClient(t, gateway.port);
  t.equal(inFlight(gateway), 1);
  first.socket.close();
  await gateway.line(({ status }) => status === 101);
  t.equal(inFlight(gateway), 0);
  t.strictSame(attempts(gateway), { 'u0/m ok': 1 });
  await openClient(t, gateway.port);
  (await upstream.arrival(1)).socket.terminate();
  await gateway.line(({ outcome }) => outcome === 'upstream_error');
  t.strictSame(attempts(gateway), { 'u0/m ok': 1, 'u0/m reset': 1 });
  t.equal(inFlight(gateway), 0);
});

test('a client that leaves while a try is waited for is not waited for', async (t) => {
  const gateway = await startGateway(t, {
    upstreams: ['http://127.0.0.1:1/v1'],
    protocols: ['realtime'],
    config: { routing: { retries: 10 } },
  });
  const opening = refusalOf(t, gateway.port).catch(() => null);
  await eventually(() => attempts(gateway)['u0/m refused']);
  gateway.gateway.close();
  await gateway.line(({ msg }) => msg === 'request');
  await opening;
  const tried = attempts(gateway)['u0/m refused'];
  await after(400);
  t.equal(attempts(gateway)['u0/m refused'], tried);
});
