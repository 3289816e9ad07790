import { test } from 'tap';
import { testKey } from '../../support/gateway.js';
import { errorAnswer as error, goodAnswer as good, startRouted as start } from '../../support/routed.js';

test('an error of one upstream is answered by the next, a mistake of the caller is not', async (t) => {
  for (const status of [401, 403, 408, 409, 429, 500, 502, 503, 504, 529]) {
    const { ask, counts, gateway } = await start(t, [error(status), good]);
    t.equal((await ask()).status, 200, `${status}`);
    t.strictSame(counts(), [1, 1]);
    t.match(await gateway.line(({ status: told }) => told === 200), { target: 'u1/m', retries: 1 });
  }
  for (const status of [400, 404, 413, 422]) {
    const { ask, counts } = await start(t, [error(status), good]);
    const { status: told, body } = await ask();
    t.equal(told, status);
    t.match(body, `own_${status}`);
    t.strictSame(counts(), [1, 0]);
  }
});

test('the last upstream has the last word, as it came', async (t) => {
  const { ask, counts } = await start(t, [error(500), error(503, 'retry-after: 7\r\n')]);
  const { status, body, retryAfter } = await ask();
  t.equal(status, 503);
  t.match(body, 'own_503');
  t.equal(retryAfter, '7');
  t.strictSame(counts(), [1, 1]);
});

test('a target that fails is left alone, and asked again after a while', async (t) => {
  const routing = { failures: 3, openMs: 5000, maxOpenMs: 5000 };
  const { ask, counts, upstreams } = await start(t, [error(500), good], { config: { routing } });
  for (let i = 0; i < 10; i++) t.equal((await ask()).status, 200);
  t.strictSame(counts(), [3, 10]);
  const [first] = upstreams;
  if (first === undefined) throw new Error('there are two');
  first.answer = good;
  await new Promise((resolve) => setTimeout(resolve, 5100));
  for (let i = 0; i < 5; i++) t.equal((await ask()).status, 200);
  t.strictSame(counts(), [8, 10]);
});

test('when every target is left alone the caller hears when to come again', async (t) => {
  const routing = { failures: 2, openMs: 60_000, maxOpenMs: 60_000 };
  const { ask, counts } = await start(t, [error(500), error(500)], { config: { routing } });
  t.equal((await ask()).status, 500);
  t.equal((await ask()).status, 500);
  const { status, retryAfter, body } = await ask();
  t.equal(status, 503);
  t.ok(Number(retryAfter) > 50 && Number(retryAfter) <= 60, `${retryAfter}`);
  t.match(JSON.parse(body), { error: { code: 'overloaded' } });
  t.strictSame(counts(), [2, 2]);
});

test('an upstream that asks to be left alone is, for as long as it asks', async (t) => {
  const { ask, counts } = await start(t, [error(429, 'retry-after: 60\r\n'), good]);
  for (let i = 0; i < 4; i++) t.equal((await ask()).status, 200);
  t.strictSame(counts(), [1, 4]);
});

test('the only target of a model is always asked, and its own answer told', async (t) => {
  const { ask, counts } = await start(t, [error(500)], { config: { routing: { failures: 1 } } });
  for (let i = 0; i < 5; i++) t.match((await ask()).body, 'own_500');
  t.strictSame(counts(), [5]);
});

test('a key that may says which targets it wants', async (t) => {
  const { gateway, ask } = await start(t, [good, good]);
  t.equal((await ask({ 'x-gateway-target': 'u1' })).status, 403);
  gateway.gateway.close();
  const { hashKey } = await import('../../../src/keys/secret.js');
  const keys = [{ id: 'test', hash: hashKey(testKey), groups: ['default'], mayRoute: true }];
  const allowed = await start(t, [good, good], { config: { keys } });
  t.equal((await allowed.ask({ 'x-gateway-target': 'u1' })).status, 200);
  t.strictSame(allowed.counts(), [0, 1]);
  t.equal((await allowed.ask({ 'x-gateway-target': '!u0/m' })).status, 200);
  t.strictSame(allowed.counts(), [0, 2]);
  t.equal((await allowed.ask({ 'x-gateway-target': 'elsewhere' })).status, 400);
  t.match((await allowed.ask({ 'x-gateway-target': '!' })).body, 'exclamation mark');
});

test('the metrics say what became of every attempt', async (t) => {
  const { gateway, ask } = await start(t, [error(503), good]);
  for (let i = 0; i < 3; i++) await ask();
  const { counters } = gateway.gateway.metrics();
  const family = (name: string) => counters.find(([found]) => found === name);
  t.match(family('gateway_upstream_attempts_total')?.[1], ['u0/m', 'status_5xx', 'u1/m', 'ok']);
  t.strictSame(family('gateway_upstream_attempts_total')?.[2], [3, 3]);
  t.strictSame(family('gateway_retries_total')?.[2], [3]);
});
