import { once } from 'node:events';
import { type Test, test } from 'tap';
import { ObservedTransform } from '../../../src/stream/observe.js';
import { chatRequest, open, readAnswer } from '../../support/raw-client.js';
import { startRouted } from '../../support/routed.js';
import { post } from '../../support/translated.js';
import { chatEvent, chunk, doneEvent, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

/** One failure would open the breaker. */
const strict = { routing: { failures: 1, openMs: 600_000, retries: 0 } };
const marker = 'met by a fault of ours';

/** Makes the gateway throw where it passes on an event with the marker. */
function breakPass(t: Test): void {
  const { prototype } = ObservedTransform;
  const { pass } = prototype;
  prototype.pass = function (run) {
    if (run.includes(marker)) throw new Error('a mistake in the gateway');
    return pass.call(this, run);
  };
  t.teardown(() => {
    prototype.pass = pass;
  });
}

test('a fault of the gateway’s own counts against no target, and no other is asked', async (t) => {
  breakPass(t);
  const faulty = streamHead + chunk(chatEvent({ content: marker })) + lastChunk;
  const good = chatEvent({ role: 'assistant', content: 'a' }) + chatEvent({}, 'stop') + doneEvent;
  const { ask, counts, counted } = await startRouted(
    t,
    [
      ({ socket }, index) => socket.write(index === 0 ? faulty : streamHead + chunk(good) + lastChunk),
      faulty,
    ],
    { config: strict },
  );
  const first = await ask({}, { stream: true });
  t.match(first.body, /"code":"internal_error"/);
  t.strictSame(counts(), [1, 0]);
  t.match((await ask({}, { stream: true })).body, /"content":"a"/);
  t.strictSame(counts(), [2, 0], 'the first target is still asked first');
  t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m canceled': 1, 'u0/m ok': 1 });
});

test('an answer that finds no memory in its middle counts against no target', async (t) => {
  const small = chatEvent({ role: 'assistant', content: 'a' });
  const good = small + chatEvent({}, 'stop') + doneEvent;
  const { ask, counts, counted, gateway, upstreams } = await startRouted(
    t,
    [
      ({ socket }, index) =>
        socket.write(streamHead + chunk(index === 0 ? small : good) + (index === 0 ? '' : lastChunk)),
      good,
    ],
    { config: { ...strict, limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } } },
  );
  const body = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}';
  const client = await open(gateway.port, chatRequest(body));
  const answer = readAnswer(client);
  await once(client, 'data');
  // It is held until its end comes.
  upstreams[0]?.requests[0]?.socket.write(chunk(chatEvent({ content: 'x'.repeat(200_000) }).slice(0, -10)));
  t.match((await answer).body, /"content":"a"(?:.|\n)*"code":"overloaded"/);
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'refused', error: 'overloaded' });
  t.match((await ask({}, { stream: true })).body, /"content":"a"(?:.|\n)*DONE/);
  t.strictSame(counts(), [2, 0]);
  t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m too_large': 1, 'u0/m ok': 1 });
});

test('an answer that finds no memory before any of it has left goes to no other target', async (t) => {
  const large = JSON.stringify({ choices: [], text: 'x'.repeat(200_000) });
  const { ask, counts, counted } = await startRouted(t, [jsonAnswer(200, large), jsonAnswer(200, large)], {
    config: { ...strict, limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } },
  });
  t.equal((await ask()).status, 503);
  t.equal((await ask()).status, 503);
  t.strictSame(counts(), [2, 0]);
  t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m too_large': 2 });
});

test('what the upstream itself does wrong counts against its target', async (t) => {
  const { ask, counts, counted, gateway } = await startRouted(
    t,
    [
      ({ socket }) => socket.write(streamHead + chunk(chatEvent({ content: 'a' })) + lastChunk),
      ({ socket }) =>
        socket.write(streamHead + chunk(chatEvent({ content: 'b' }, 'stop') + doneEvent) + lastChunk),
    ],
    { config: strict },
  );
  t.match((await ask({}, { stream: true })).body, /"code":"upstream_error"/);
  t.match(await gateway.line(({ msg }) => msg === 'request'), {
    outcome: 'upstream_error',
    cause: "ended without its protocol's end",
  });
  t.match((await ask({}, { stream: true })).body, /"content":"b"/);
  t.strictSame(counts(), [1, 1], 'the first target is left alone');
  t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m malformed': 1, 'u1/m ok': 1 });
});

const errorEvent = (error: object): string =>
  streamHead + chunk(`event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`) + lastChunk;

test('the caller’s mistake, told in a stream, counts against no target, and no other is asked', async (t) => {
  const messages = [{ role: 'user', content: 'hi' }];
  const body = { model: 'm', max_tokens: 5, stream: true, messages };
  for (const [type, status, message] of [
    ['invalid_request_error', 400, 'too long'],
    ['request_too_large', 413, 'too long'],
    ['not_found_error', 404, 'no such file'],
    ['permission_error', 403, 'flagged by our safety system'],
  ] as const) {
    const mistake = errorEvent({ type, message });
    const { counts, counted, gateway } = await startRouted(t, [mistake, mistake], {
      config: strict,
      upstream: { kind: 'messages' },
      protocols: ['messages', 'chat'],
    });
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      const answer = await post(gateway.port, path, body);
      t.equal(answer.status, status, type);
      t.match(answer.body, message);
    }
    t.strictSame(counts(), [2, 0]);
    t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m status_4xx': 2 });
  }
});

test('so does one that a chat upstream tells under a good status, in a stream and in place of a whole answer', async (t) => {
  for (const [error, status] of [
    [{ type: 'invalid_request_error', code: 'context_length_exceeded', message: 'no' }, 400],
    [{ code: 400, message: 'no' }, 400],
    [{ type: 'UnprocessableEntityError', code: '422', message: 'no' }, 400],
    [{ code: 413, message: 'no' }, 413],
    [{ code: 404, message: 'no' }, 404],
  ] as const)
    for (const stream of [true, false]) {
      const mistake = stream ? errorEvent(error) : jsonAnswer(200, JSON.stringify({ error }));
      const { ask, counts, counted } = await startRouted(t, [mistake, mistake], { config: strict });
      t.equal((await ask({}, { stream })).status, status, JSON.stringify(error));
      await ask({}, { stream });
      t.strictSame(counts(), [2, 0], 'the first target is still asked first');
      t.strictSame(counted('gateway_upstream_attempts_total'), { 'u0/m status_4xx': 2 });
    }
});

test('a limit, told in a stream, is no failure: the next target is asked, and the first again in a moment', async (t) => {
  const good = chatEvent({ role: 'assistant', content: 'a' }, 'stop') + doneEvent;
  const { ask, counts, counted } = await startRouted(
    t,
    [
      errorEvent({ code: 'rate_limit_exceeded', message: 'slow down' }),
      ({ socket }) => socket.write(streamHead + chunk(good) + lastChunk),
    ],
    { config: strict },
  );
  t.match((await ask({}, { stream: true })).body, /"content":"a"/);
  t.strictSame(counts(), [1, 1]);
  t.match(counted('gateway_upstream_attempts_total'), { 'u0/m status_429': 1 });
});

const first = {
  responses: 'event: response.created\ndata: {"type":"response.created","response":{}}\n\n',
  messages:
    'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text"}}\n\n',
  chat: chatEvent({ role: 'assistant', content: 'a' }),
  generateContent: 'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n',
} as const;
const event = (body: object): string => `data: ${JSON.stringify(body)}\n\n`;
const failedResponse = (code: string, instructions = ''): string =>
  event({ type: 'response.failed', response: { instructions, error: { code, message: 'no' } } });

/** How streams end by their upstreams' own words once they have begun, and what is counted. */
const endings: readonly (readonly [protocol: keyof typeof first, last: string, counted: string])[] = [
  ['responses', failedResponse('context_length_exceeded'), 'status_4xx'],
  ['responses', failedResponse('invalid_prompt', 'x'.repeat(5000)), 'status_4xx'],
  ['responses', failedResponse('rate_limit_exceeded'), 'status_429'],
  ['responses', failedResponse('server_error', 'x'.repeat(5000)), 'malformed'],
  [
    'messages',
    event({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } }),
    'status_4xx',
  ],
  ['messages', event({ type: 'error', error: { type: 'overloaded_error', message: 'no' } }), 'malformed'],
  [
    'generateContent',
    event({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'no' } }),
    'status_4xx',
  ],
  ['chat', event({ error: { code: 'rate_limit_exceeded', message: 'no' } }), 'status_429'],
  ['chat', event({ error: { message: 'no' } }), 'malformed'],
];

test('an error that ends a stream which has begun counts as what it says, and passes as it came', async (t) => {
  const messages = [{ role: 'user', content: 'hi' }];
  const asks = {
    responses: ['/v1/responses', { model: 'm', stream: true, input: 'hi' }],
    messages: ['/v1/messages', { model: 'm', stream: true, max_tokens: 5, messages }],
    chat: ['/v1/chat/completions', { model: 'm', stream: true, messages }],
    generateContent: [
      '/v1beta/models/m:streamGenerateContent?alt=sse',
      { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    ],
  } as const;
  for (const [protocol, last, result] of endings) {
    for (const isBroken of [false, true]) {
      const events = first[protocol] + last;
      const { counts, counted, gateway } = await startRouted(
        t,
        [
          ({ socket }) =>
            isBroken
              ? socket.write(streamHead + chunk(events), () => setTimeout(() => socket.resetAndDestroy(), 20))
              : socket.write(streamHead + chunk(events) + lastChunk),
          '',
        ],
        {
          config: strict,
          upstream: { kind: protocol === 'responses' ? 'chat' : protocol },
          target: protocol === 'responses' ? { responses: true } : {},
          protocols: [protocol],
        },
      );
      const [path, body] = asks[protocol];
      const what = `${protocol} ${last.slice(0, 90)} ${isBroken ? 'broken' : 'whole'}`;
      t.equal((await post(gateway.port, path, body)).body, events, what);
      t.strictSame(counted('gateway_upstream_attempts_total'), { [`u0/m ${result}`]: 1 }, what);
      if (result !== 'status_4xx') continue;
      await post(gateway.port, path, body);
      t.strictSame(counts(), [2, 0], 'the first target is still asked first');
    }
  }
});
