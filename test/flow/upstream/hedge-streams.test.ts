import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { chatRequest, open } from '../../support/raw-client.js';
import { errorAnswer, goodAnswer, type Routed, startRouted } from '../../support/routed.js';
import { post, textProtocols } from '../../support/translated.js';
import {
  type Answer,
  chatEvent,
  chunk,
  doneEvent,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  streamHead,
  untilCut,
  usageEvent,
} from '../../support/upstream.js';

const silent: Answer = () => {};
const stream = { stream: true, stream_options: { include_usage: true } };
const eventsOf = (who: string): string =>
  chatEvent({ role: 'assistant', content: who }) + chatEvent({}, 'stop') + usageEvent + doneEvent;
const streamOf = (who: string): string => streamHead + chunk(eventsOf(who)) + lastChunk;
/** Nothing of an answer, but for its head. */
const headOnly: Answer = ({ socket }) => void socket.write(streamHead + chunk(': ping\n\n'));

function start(
  t: Test,
  behaviours: readonly Answer[],
  model = {},
  config = {},
  upstream = {},
): Promise<Routed> {
  return startRouted(t, behaviours, {
    upstream,
    config: {
      ...config,
      models: {
        m: {
          protocols: textProtocols,
          targets: behaviours.map((_, priority) => ({ upstream: `u${priority}`, priority })),
          hedgeMs: 20,
          ...model,
        },
      },
    },
  });
}

/** Asks for a stream and waits until both targets have been asked. */
async function askBoth(routed: Routed) {
  const asked = routed.ask({}, stream);
  const [first, second] = await Promise.all(routed.upstreams.slice(0, 2).map((each) => each.request(0)));
  if (first === undefined || second === undefined) throw new Error('both were asked');
  return { asked, requests: [first, second] as const };
}

test('a stream without an event is overtaken by the next target, though its head has come', async (t) => {
  for (const behaviour of [silent, headOnly]) {
    const routed = await start(t, [behaviour, streamOf('second')], {}, { routing: { failures: 1 } });
    const { status, body } = await routed.ask({}, stream);
    t.equal(status, 200);
    t.equal(body, eventsOf('second'));
    await untilCut(routed.upstreams[0]);
    const line = await routed.gateway.line(({ msg }) => msg === 'request');
    t.match(line, { target: 'u1/m', retries: 1, outcome: 'complete', inputTokens: 3, outputTokens: 4 });
    t.ok(Number(line.givenUpInputTokens) > 0, 'what the other is thought to have read is told apart');
    t.strictSame(routed.counted('gateway_hedges_total'), { 'm sent': 1, 'm won': 1 });
    t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u1/m ok': 1 });
  }
});

test('the first still wins with the first event, and all that it has sent before passes', async (t) => {
  const routed = await start(t, [headOnly, headOnly]);
  const { asked, requests } = await askBoth(routed);
  const [before, after] = [chunk(eventsOf('first').slice(0, 40)), chunk(eventsOf('first').slice(40))];
  requests[0].socket.write(before);
  requests[0].socket.write(after + lastChunk);
  const { status, body } = await asked;
  t.equal(status, 200);
  t.equal(body, `: ping\n\n${eventsOf('first')}`);
  await untilCut(routed.upstreams[1]);
  t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { target: 'u0/m', outcome: 'complete' });
  t.strictSame(routed.counted('gateway_hedges_total'), { 'm sent': 1 });
});

test('a stream that answers before the time is sent once', async (t) => {
  const routed = await start(t, [streamOf('first'), streamOf('second')], { hedgeMs: 5000 });
  t.equal((await routed.ask({}, stream)).body, eventsOf('first'));
  t.strictSame(routed.counts(), [1, 0]);
  t.notOk('givenUpInputTokens' in (await routed.gateway.line(({ msg }) => msg === 'request')));
});

const failures: readonly (readonly [string, (request: RawRequest) => unknown])[] = [
  ['an error status', ({ socket }) => socket.write(errorAnswer(500))],
  ['a broken connection', ({ socket }) => socket.resetAndDestroy()],
  ['an end without an event', ({ socket }) => socket.write(streamHead + lastChunk)],
  [
    'an error for its first event',
    ({ socket }) => socket.write(`${streamHead}${chunk('data: {"error":{"message":"busy"}}\n\n')}`),
  ],
];

for (const [what, fail] of failures) {
  test(`what is no stream does not win while the other is open: ${what}`, async (t) => {
    for (const loser of [0, 1] as const) {
      const routed = await start(t, [silent, silent]);
      const { asked, requests } = await askBoth(routed);
      fail(requests[loser]);
      await eventually(() =>
        Object.keys(routed.counted('gateway_upstream_attempts_total'))[0]?.startsWith(`u${loser}/m `),
      );
      requests[1 - loser]?.socket.write(streamOf('winner'));
      const { status, body } = await asked;
      t.equal(status, 200);
      t.equal(body, eventsOf('winner'));
      t.match(await routed.gateway.line(({ msg }) => msg === 'request'), {
        target: `u${1 - loser}/m`,
        outcome: 'complete',
      });
    }
  });
}

test('what is not called a stream does not win while the other is open, and is handed on when it is not', async (t) => {
  const routed = await start(t, [silent, silent]);
  const { asked, requests } = await askBoth(routed);
  requests[0].socket.write(goodAnswer);
  await after(30);
  requests[1].socket.write(streamOf('winner'));
  t.equal((await asked).body, eventsOf('winner'));
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u1/m ok': 1 });
  const alone = await start(t, [goodAnswer, silent], { hedgeMs: 5000 });
  t.match(await alone.ask({}, stream), { status: 200, body: /"hi"/ });
});

test('an error that ends without a blank line does not win while the other is open', async (t) => {
  const routed = await start(t, [silent, silent]);
  const { asked, requests } = await askBoth(routed);
  requests[0].socket.write(streamHead + chunk('data: {"error":{"message":"bad"}}') + lastChunk);
  await eventually(() => routed.counted('gateway_upstream_attempts_total')['u0/m malformed']);
  requests[1].socket.write(streamOf('winner'));
  t.equal((await asked).body, eventsOf('winner'));
});

test('a target that would keep what is asked is no second one, and is asked when the first has failed', async (t) => {
  const targets = [
    { upstream: 'u0', priority: 0, rules: { set: { store: false } } },
    { upstream: 'u1', priority: 1 },
  ];
  const routed = await start(t, [silent, streamOf('second')], { targets });
  const asked = routed.ask({}, { ...stream, store: true });
  const request = await routed.upstreams[0]?.request(0);
  await after(60);
  t.strictSame(routed.counts(), [1, 0]);
  request?.socket.write(errorAnswer(500));
  t.match(await asked, { status: 200, body: /second/ });
});

test('when both fail the next target is asked, and without one the last error is told', async (t) => {
  for (const spare of [true, false]) {
    const routed = await start(t, spare ? [silent, silent, streamOf('third')] : [silent, silent]);
    const { asked, requests } = await askBoth(routed);
    requests[0].socket.write(errorAnswer(502));
    await eventually(() => routed.counted('gateway_upstream_attempts_total')['u0/m status_5xx']);
    requests[1].socket.write(
      `${streamHead}${chunk('data: {"error":{"message":"spent","code":"rate_limit_exceeded"}}\n\n')}`,
    );
    t.match(await asked, spare ? { status: 200, body: /third/ } : { status: 429, body: /spent/ });
  }
});

test('an error that is handed on since nothing else is left has won no hedge', async (t) => {
  const endings = [
    errorAnswer(400),
    jsonAnswer(302, '{}'),
    `${streamHead}${chunk('data: {"error":{"message":"busy"}}\n\n')}`,
  ];
  for (const ending of endings) {
    const routed = await start(t, [silent, silent]);
    const { asked, requests } = await askBoth(routed);
    requests[0].socket.write(errorAnswer(502));
    await eventually(() => routed.counted('gateway_upstream_attempts_total')['u0/m status_5xx']);
    requests[1].socket.write(ending);
    t.not((await asked).status, 200);
    t.strictSame(routed.counted('gateway_hedges_total'), { 'm sent': 1 });
  }
});

/** Sends a call for a stream, and has its client leave once both targets have been asked. */
async function leaveBoth(routed: Routed, until: () => boolean = () => true) {
  const body = JSON.stringify({ model: 'm', ...stream, messages: [{ role: 'user', content: 'hi' }] });
  const client = await open(routed.gateway.port, chatRequest(body));
  const requests = await Promise.all(routed.upstreams.map((upstream) => upstream.request(0)));
  await eventually(until);
  client.destroy();
  return requests;
}

test('a client that leaves cancels both streams where neither is to be read on for', async (t) => {
  const routed = await start(t, [headOnly, headOnly], {}, {}, { onLeave: 'cancel' });
  await leaveBoth(routed);
  for (const upstream of routed.upstreams) await untilCut(upstream);
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outcome: 'client_gone', tokensPartial: true });
  t.ok(Number(line.givenUpInputTokens) > 0, 'what the other is thought to have read is told apart');
});

test('of two streams whose client leaves, the one that has begun is read on for', async (t) => {
  const routed = await start(t, [silent, headOnly]);
  const family = 'gateway_target_first_byte_seconds';
  const begun = (): boolean => {
    const rows = routed.gateway.gateway.metrics().histograms.find(([name]) => name === family);
    return rows?.[1].includes('u1/m') === true;
  };
  const [, second] = await leaveBoth(routed, begun);
  await untilCut(routed.upstreams[0]);
  second?.socket.write(chunk(eventsOf('second')) + lastChunk);
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outcome: 'client_gone', target: 'u1/m', inputTokens: 3, outputTokens: 4 });
  t.equal(line.tokensPartial, undefined);
  t.ok(Number(line.givenUpInputTokens) > 0);
});

test('a translated stream is hedged: the start of an answer does not win', async (t) => {
  const role: Answer = ({ socket }) =>
    void socket.write(streamHead + chunk(chatEvent({ role: 'assistant', content: '' })));
  const routed = await start(t, [role, streamOf('second')]);
  const { body } = await post(routed.gateway.port, '/v1/messages', {
    model: 'm',
    stream: true,
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.match(body, 'second');
  t.equal(body.match(/^event: message_start$/gm)?.length, 1);
  t.match(body, 'message_stop');
});

test('a first target that has sent nothing after firstTokenMs is given up for the second', async (t) => {
  const routed = await start(t, [silent, silent], { firstTokenMs: 150 });
  const { asked, requests } = await askBoth(routed);
  await untilCut(routed.upstreams[0]);
  requests[1].socket.write(streamOf('second'));
  t.match(await asked, { status: 200, body: /second/ });
  t.strictSame(routed.counted('gateway_upstream_attempts_total'), { 'u0/m timeout': 1, 'u1/m ok': 1 });
});

test('a beginning without an end is not kept back for ever', async (t) => {
  const long = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${'x'.repeat(100_000)}`;
  const routed = await start(t, [({ socket }) => void socket.write(streamHead + chunk(long)), silent], {
    hedgeMs: 5000,
  });
  const asked = routed.ask({}, stream);
  const request = await routed.upstreams[0]?.request(0);
  request?.socket.write(chunk(`"},"finish_reason":"stop"}]}\n\n${doneEvent}`) + lastChunk);
  t.match(await asked, { status: 200, body: /x{1000}/ });
});
