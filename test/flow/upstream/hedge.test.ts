import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { testKey } from '../../support/gateway.js';
import { errorAnswer, goodAnswer, type Routed, startRouted } from '../../support/routed.js';
import { type Answer, completion, jsonAnswer, type RawRequest, untilCut } from '../../support/upstream.js';

/** A chat completion that tells who made it and used so many tokens. */
const answerOf = (who: string, tokens: number): string =>
  jsonAnswer(
    200,
    completion
      .replace('"hi"', JSON.stringify(who))
      .replace('"completion_tokens":4', `"completion_tokens":${tokens}`),
  );
const silent: Answer = () => {};

/** A gateway whose model has a target for each behaviour, and sends a slow call to the next. */
function start(
  t: Test,
  behaviours: readonly Answer[],
  { hedgeMs = 20, routing = {}, onLeave = 'drain' } = {},
) {
  return startRouted(t, behaviours, {
    upstream: { onLeave },
    config: {
      routing,
      models: {
        m: {
          protocols: ['chat', 'messages'],
          targets: behaviours.map((_, priority) => ({ upstream: `u${priority}`, priority })),
          hedgeMs,
        },
      },
    },
  });
}

test('a slow target is overtaken by the next: its own call is cancelled and not held against it', async (t) => {
  const routed = await start(t, [silent, answerOf('second', 9)], { routing: { failures: 1 } });
  const { status, body } = await routed.ask();
  t.equal(status, 200);
  t.match(body, '"second"');
  await untilCut(routed.upstreams[0]);
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { target: 'u1/m', retries: 1, outcome: 'complete', outputTokens: 9 });
  t.strictSame(routed.counted('gateway_hedges_total'), { 'm sent': 1, 'm won': 1 });
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u1/m ok': 1 });
  const [first] = routed.upstreams;
  if (first === undefined) throw new Error('there are two');
  first.answer = answerOf('first', 1);
  t.match((await routed.ask()).body, '"first"', 'it is still asked first');
});

test('the first still wins when it answers first, and the second is cancelled', async (t) => {
  const routed = await start(t, [silent, silent]);
  const asked = routed.ask();
  await routed.upstreams[1]?.request(0);
  const request = await routed.upstreams[0]?.request(0);
  request?.socket.write(answerOf('first', 5));
  t.match(await asked, { status: 200, body: /"first"/ });
  await untilCut(routed.upstreams[1]);
  t.match(await routed.gateway.line(({ msg }) => msg === 'request'), {
    target: 'u0/m',
    outputTokens: 5,
  });
  t.strictSame(routed.counted('gateway_hedges_total'), { 'm sent': 1 });
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m ok': 1 });
});

test('an answer that has come when a blocked event loop goes on is not sent to a second target', async (t) => {
  const routed = await start(t, [silent, answerOf('second', 9)], { hedgeMs: 1000 });
  const asked = routed.ask();
  const request = await routed.upstreams[0]?.request(0);
  request?.socket.write(answerOf('first', 5));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
  t.match(await asked, { status: 200, body: /"first"/ });
  t.strictSame(routed.counted('gateway_hedges_total'), {});
});

test('an error or a failure of one does not win while the other is open', async (t) => {
  const failing: readonly Answer[] = [
    errorAnswer(500),
    errorAnswer(400),
    ({ socket }) => void socket.resetAndDestroy(),
  ];
  for (const failure of failing) {
    for (const loser of [0, 1]) {
      const routed = await start(t, [silent, silent]);
      const asked = routed.ask();
      const requests = await Promise.all(routed.upstreams.map((upstream) => upstream.request(0)));
      const [lost, won] = loser === 0 ? requests : [...requests].reverse();
      if (lost === undefined || won === undefined) throw new Error('both were asked');
      if (typeof failure === 'function') failure(lost, 0);
      else lost.socket.write(failure);
      await after(30);
      won.socket.write(answerOf('winner', 2));
      t.match(await asked, { status: 200, body: /"winner"/ });
      t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { target: `u${1 - loser}/m` });
      t.equal(routed.counted('gateway_hedges_total')['m won'] ?? 0, loser === 0 ? 1 : 0);
    }
  }
});

test('when both fail, the next target is asked, and without one the last error is told', async (t) => {
  for (const spare of [true, false]) {
    const routed = await start(t, spare ? [silent, silent, goodAnswer] : [silent, silent]);
    const asked = routed.ask();
    const [first, second] = await Promise.all(routed.upstreams.slice(0, 2).map((each) => each.request(0)));
    first?.socket.write(errorAnswer(502));
    await eventually(() => routed.counted('gateway_upstream_attempts_total')['u0/m status_5xx']);
    second?.socket.write(errorAnswer(503));
    if (spare) t.match(await asked, { status: 200 });
    else t.match(await asked, { status: 503, body: /own_503/ });
    t.strictSame(routed.counts(), spare ? [1, 1, 1] : [1, 1]);
  }
});

test('when the second fails, the first still has its other keys', async (t) => {
  const routed = await startRouted(t, [silent, errorAnswer(500)], {
    upstream: { apiKeys: ['sk-first', 'sk-second'] },
    config: {
      models: {
        m: {
          protocols: ['chat'],
          targets: [0, 1].map((priority) => ({ upstream: `u${priority}`, priority })),
          hedgeMs: 20,
        },
      },
    },
  });
  const asked = routed.ask();
  const first = await routed.upstreams[0]?.request(0);
  await eventually(() => routed.counted('gateway_upstream_attempts_total')['u1/m status_5xx']);
  first?.socket.write(errorAnswer(401));
  const again = await routed.upstreams[0]?.request(1);
  again?.socket.write(goodAnswer);
  t.match(await asked, { status: 200 });
  t.equal(new Set(routed.keys(0)).size, 2);
  t.equal(routed.counts()[1], 1);
});

/** Sends a call, and has its client leave once both targets have been asked. @returns what each of them was asked */
async function leaveBoth(routed: Routed): Promise<readonly RawRequest[]> {
  const leaving = new AbortController();
  const asked = fetch(`${routed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
  }).catch(() => null);
  const requests = await Promise.all(routed.upstreams.map((upstream) => upstream.request(0)));
  leaving.abort();
  await asked;
  return requests;
}

test('a client that leaves cancels both at once where neither is to be read on for', async (t) => {
  const routed = await start(t, [silent, silent], { onLeave: 'cancel' });
  await leaveBoth(routed);
  for (const upstream of routed.upstreams) await untilCut(upstream);
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outcome: 'client_gone', target: 'u0/m', tokensPartial: true });
  t.ok(Number(line.givenUpInputTokens) > 0, 'what the other is thought to have read is told apart');
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), {});
});

test('of two attempts whose client leaves, the first is read on for and the other is cancelled', async (t) => {
  const routed = await start(t, [silent, silent]);
  const [first] = await leaveBoth(routed);
  await untilCut(routed.upstreams[1]);
  first?.socket.write(answerOf('first', 5));
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outcome: 'client_gone', target: 'u0/m', inputTokens: 3, outputTokens: 5 });
  t.equal(line.tokensPartial, undefined);
  t.ok(Number(line.givenUpInputTokens) > 0);
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m ok': 1 });
});

test('no more than a tenth of the calls is sent twice, however slow the first target is', async (t) => {
  const hedgeMs = 5;
  const routed = await start(t, [silent, silent], { hedgeMs });
  const sentTwice = () => routed.counted('gateway_hedges_total')['m sent'] ?? 0;
  for (let round = 1; round <= 4; round++) {
    const asked = Array.from({ length: 10 }, () => routed.ask());
    const [first] = routed.upstreams;
    await eventually(() => first?.requests.length === 10 * round);
    // Timers of this process that take as long end in the order in which they began: those of the gateway have ended.
    await after(hedgeMs);
    await eventually(() => routed.counts()[1] === sentTwice());
    for (const { socket } of first?.requests.slice(-10) ?? []) socket.write(goodAnswer);
    for (const { status } of await Promise.all(asked)) t.equal(status, 200);
  }
  const { 'm sent': sent = 0 } = routed.counted('gateway_hedges_total');
  t.ok(sent >= 2 && sent <= 5, `${sent}`);
  t.equal(routed.counts()[1], sent);
});

test('a call with no other target is sent once', async (t) => {
  const slow: Answer = ({ socket }) => void setTimeout(() => socket.write(goodAnswer), 100);
  const alone = await start(t, [slow], { hedgeMs: 5 });
  t.equal((await alone.ask()).status, 200);
  t.strictSame(alone.counts(), [1]);
});

test('a call that is translated is hedged as well', async (t) => {
  const routed = await start(t, [silent, answerOf('second', 9)]);
  const answer = await fetch(`${routed.gateway.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': testKey,
      'vendorc-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
  });
  t.equal(answer.headers.get('x-gateway-path'), 'translated');
  t.match(await answer.json(), {
    type: 'message',
    content: [{ text: 'second' }],
    usage: { output_tokens: 9 },
  });
});
