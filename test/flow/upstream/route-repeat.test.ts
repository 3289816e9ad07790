import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { testKey } from '../../support/gateway.js';
import { goodAnswer, startRouted } from '../../support/routed.js';
import { type Answer, startRawUpstream } from '../../support/upstream.js';

test('a connection that was closed while nobody used it is no error for anybody', async (t) => {
  const routed = await startRouted(t, [goodAnswer]);
  for (let i = 0; i < 5; i++) {
    t.equal((await routed.ask()).status, 200);
    // A server that restarts: the close and the next request cross each other.
    for (const socket of routed.upstreams[0]?.sockets ?? []) socket.resetAndDestroy();
  }
  t.equal((await routed.ask()).status, 200);
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m ok': 6 });
});

test('an upstream that is away for a moment is tried again where no other target is left', async (t) => {
  const port = await freePort();
  const routed = await startRouted(t, [], {
    upstreams: [`http://127.0.0.1:${port}/v1`],
    config: { routing: { retries: 10 } },
  });
  const asked = routed.ask();
  await eventually(() => routed.counted('gateway_upstream_attempts_total')['u0/m refused']);
  await startRawUpstream(t, goodAnswer, { port });
  t.equal((await asked).status, 200);
  const { retries } = await routed.gateway.line(({ msg }) => msg === 'request');
  t.ok(Number(retries) >= 1, `${retries}`);
});

test('it is tried as often as the config says, and then told', async (t) => {
  const url = `http://127.0.0.1:${await freePort()}/v1`;
  for (const retries of [0, 1, 3]) {
    const routed = await startRouted(t, [], { upstreams: [url], config: { routing: { retries } } });
    t.match(await routed.ask(), { status: 502, body: /cannot be reached/ });
    t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m refused': 1 + retries });
    t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { retries });
  }
});

test('the next target comes before a try at the same', async (t) => {
  const nowhere = `http://127.0.0.1:${await freePort()}/v1`;
  const spare = await startRouted(t, [goodAnswer]);
  const routed = await startRouted(t, [], { upstreams: [nowhere, spare.upstreams[0]?.url ?? ''] });
  t.equal((await routed.ask()).status, 200);
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m refused': 1, 'u1/m ok': 1 });
});

test('a client that leaves while a try is waited for ends the call at once', async (t) => {
  const url = `http://127.0.0.1:${await freePort()}/v1`;
  const routed = await startRouted(t, [], { upstreams: [url], config: { routing: { retries: 10 } } });
  const leaving = new AbortController();
  const asked = fetch(`${routed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
  }).catch(() => null);
  // Ten tries take seconds: some are made by then, and most are not.
  await eventually(() => (routed.counted('gateway_upstream_attempts_total')['u0/m refused'] ?? 0) >= 2);
  leaving.abort();
  await asked;
  t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { outcome: 'client_gone' });
  const tried = routed.counted('gateway_upstream_attempts_total')['u0/m refused'];
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.equal(routed.counted('gateway_upstream_attempts_total')['u0/m refused'], tried);
});

test('what may have been done all the same is asked for nowhere again, and its client is told not to', async (t) => {
  const breaking: Answer = ({ socket }) => void socket.resetAndDestroy();
  for (const [more, shouldRetry, counts] of [
    [{ store: true }, 'false', [1, 0]],
    [{ store: true, stream: true }, 'false', [1, 0]],
    [{}, null, [1, 1]],
  ] as const) {
    const routed = await startRouted(t, [breaking, breaking]);
    t.match(await routed.ask({}, more), { status: 502, shouldRetry });
    t.strictSame(routed.counts(), counts);
  }
});

test('a target that refused what would be made once says nothing against another try', async (t) => {
  const nowhere = `http://127.0.0.1:${await freePort()}/v1`;
  const routed = await startRouted(t, [], { upstreams: [nowhere], config: { routing: { retries: 0 } } });
  t.match(await routed.ask({}, { store: true }), { status: 502, shouldRetry: null });
});
