import { test } from 'tap';
import { errorAnswer, goodAnswer, keyOf, startRouted } from '../../support/routed.js';
import { jsonAnswer, type RawRequest } from '../../support/upstream.js';

const apiKeys = ['sk-first', 'sk-second', 'sk-third'];
const upstream = { apiKeys };

/** Refuses one key, and serves the others. */
const refusing = (key: string, answer: string) => (request: RawRequest) =>
  void request.socket.write(keyOf(request) === key ? answer : goodAnswer);

test('a key that is refused is left alone; its upstream answers with another, and its target is well', async (t) => {
  for (const refusal of [
    errorAnswer(401),
    errorAnswer(402),
    errorAnswer(403),
    errorAnswer(429, 'retry-after: 60\r\n'),
  ]) {
    const routed = await startRouted(t, [refusing('sk-second', refusal), goodAnswer], {
      upstream,
      config: { routing: { failures: 1, openMs: 60_000 } },
    });
    for (let i = 0; i < 40; i++) t.equal((await routed.ask()).status, 200);
    const used = routed.keys(0);
    t.equal(used.filter((key) => key === 'sk-second').length, 1);
    t.equal(new Set(used).size, 3);
    t.strictSame(routed.counts(), [41, 0], 'the next target is not troubled');
    t.strictSame(routed.counted('gateway_retries_total'), { 'u0/m': 1 });
    routed.gateway.gateway.close();
  }
});

test('each key is asked once, then the next target, and the target rests until a key is well', async (t) => {
  const routed = await startRouted(t, [errorAnswer(429, 'retry-after: 60\r\n'), goodAnswer], { upstream });
  t.equal((await routed.ask()).status, 200);
  t.strictSame(routed.keys(0).sort(), [...apiKeys].sort());
  for (let i = 0; i < 3; i++) t.equal((await routed.ask()).status, 200);
  t.strictSame(routed.counts(), [3, 4]);
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m status_429': 3, 'u1/m ok': 4 });
});

test('a target that says in its error alone when it is to be asked again is not asked before', async (t) => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '35s' }];
  const error = { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED', details };
  const limited = jsonAnswer(429, JSON.stringify({ error }));
  const routed = await startRouted(t, [limited, limited]);
  t.equal((await routed.ask()).status, 429);
  const again = await routed.ask();
  t.equal(again.status, 503, again.body);
  t.ok(Number(again.retryAfter) > 1 && Number(again.retryAfter) <= 35, `${again.retryAfter}`);
  t.strictSame(routed.counts(), [1, 1]);
});

test('where all keys of the only target are refused the caller is told of no key, and it is asked again', async (t) => {
  const routed = await startRouted(t, [errorAnswer(401)], { upstream });
  const told = await routed.ask();
  t.match(told, { status: 502, body: /upstream_error/ });
  t.notMatch(told.body, /own_401|from the upstream/);
  t.strictSame(routed.keys(0).sort(), [...apiKeys].sort());
  t.match(await routed.ask(), { status: 502 });
  t.equal(routed.counts()[0], 4, 'none of them is well: one is tried');
});

test('an error that is not of the key goes to the next target', async (t) => {
  const routed = await startRouted(t, [errorAnswer(500), goodAnswer], { upstream });
  t.equal((await routed.ask()).status, 200);
  t.strictSame(routed.counts(), [1, 1]);
});

test('calls that begin alike keep their key while it is well', async (t) => {
  const long = { messages: [{ role: 'user', content: 'x'.repeat(4000) }] };
  const routed = await startRouted(t, [goodAnswer], { upstream, config: { routing: { openMs: 60_000 } } });
  for (let i = 0; i < 8; i++) t.equal((await routed.ask({}, long)).status, 200);
  const [own] = routed.keys(0);
  t.strictSame(new Set(routed.keys(0)), new Set([own]));
  const [first] = routed.upstreams;
  if (first === undefined) throw new Error('there is one');
  first.answer = refusing(`${own}`, errorAnswer(401));
  for (let i = 0; i < 8; i++) t.equal((await routed.ask({}, long)).status, 200);
  const after = routed.keys(0).slice(8);
  t.equal(after[0], own);
  t.equal(new Set(after.slice(1)).size, 1, 'they go together to one of the others');
  t.not(after[1], own);
});

test('a line that changes with every call of a coding agent does not change its key', async (t) => {
  const routed = await startRouted(t, [goodAnswer], { upstream });
  for (let i = 0; i < 12; i++) {
    const content = `x-anthropic-billing-header: cch=${i};\n${'x'.repeat(4000)}`;
    t.equal((await routed.ask({}, { messages: [{ role: 'system', content }] })).status, 200);
  }
  t.equal(new Set(routed.keys(0)).size, 1);
});
