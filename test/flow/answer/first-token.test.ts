import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { named, unnamed } from '../../support/events.js';
import { chatRequest, open } from '../../support/raw-client.js';
import { errorAnswer, goodAnswer, type Routed, startRouted } from '../../support/routed.js';
import { post, postBytes, textProtocols } from '../../support/translated.js';
import {
  type Answer,
  chatEvent,
  chunk,
  doneEvent,
  lastChunk,
  streamHead,
  untilCut,
  usageEvent,
} from '../../support/upstream.js';

const stream = { stream: true };
const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}';
const silent: Answer = () => {};
const streamOf = (text: string): string =>
  streamHead + chunk(chatEvent({ content: text }) + chatEvent({}, 'stop') + doneEvent) + lastChunk;
const second: Answer = streamOf('second');

interface Plan {
  readonly firstTokenMs?: number;
  /** Of the second target. */
  readonly second?: object;
  /** Of the first target alone. */
  readonly own?: number;
  readonly routing?: object;
  /** Of each upstream. */
  readonly upstream?: Record<string, unknown>;
  /** Of each target. */
  readonly every?: object;
}

/**
 * A gateway with a target for each behaviour, each of which has so long for its first event. Unless given, that is long
 * enough for it to be asked on a slow machine, too.
 */
function start(t: Test, behaviours: readonly Answer[], plan: Plan = {}): Promise<Routed> {
  const { firstTokenMs = 300, own, second = {}, routing = {}, upstream = {}, every = {} } = plan;
  return startRouted(t, behaviours, {
    upstream,
    config: {
      routing: { retries: 0, ...routing },
      models: {
        m: {
          protocols: textProtocols,
          targets: behaviours.map((_, priority) => ({
            upstream: `u${priority}`,
            priority,
            ...every,
            ...(priority === 0 && own !== undefined ? { firstTokenMs: own } : {}),
            ...(priority === 1 ? second : {}),
          })),
          firstTokenMs,
        },
      },
    },
  });
}

const silences: readonly (readonly [string, Answer])[] = [
  ['no head', silent],
  ['a head and nothing behind it', ({ socket }) => void socket.write(streamHead)],
  [
    'pings for ever',
    ({ socket }) => {
      socket.write(streamHead);
      const pings = setInterval(() => socket.write(chunk(': ping\n\n')), 5);
      socket.on('close', () => clearInterval(pings));
    },
  ],
  [
    'a head that calls it no stream',
    ({ socket }) => void socket.write(streamHead.replace('text/event-stream', 'text/plain') + chunk('da')),
  ],
  ['part of an event', ({ socket }) => void socket.write(streamHead + chunk('data: {"id":"c","cho'))],
  [
    'an error answer without an end',
    ({ socket }) =>
      void socket.write(
        'HTTP/1.1 429 Too Many\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"err',
      ),
  ],
];

for (const [what, behaviour] of silences) {
  test(`a target is given up for the next one: ${what}`, async (t) => {
    // The head of an error is to have come before the time is over.
    const isError = what.startsWith('an error');
    const routed = await start(t, [behaviour, second], isError ? { firstTokenMs: 2000 } : {});
    const { status, body } = await routed.ask({}, stream);
    t.equal(status, 200);
    t.equal(body, chatEvent({ content: 'second' }) + chatEvent({}, 'stop') + doneEvent);
    await untilCut(routed.upstreams[0]);
    const line = await routed.gateway.line(({ msg }) => msg === 'request');
    t.match(line, { target: 'u1/m', retries: 1, outcome: 'complete' });
    if (isError) t.notOk('givenUpInputTokens' in line, 'what is refused reads nothing');
    else t.ok(Number(line.givenUpInputTokens) > 0, 'its input is estimated');
    t.match(routed.counted('gateway_upstream_attempts_total'), { 'u1/m ok': 1 });
    t.equal(Object.values(routed.counted('gateway_upstream_attempts_total')).length, 2);
  });
}

test('where it is translated, the start of an answer is no event of it yet', async (t) => {
  const role: Answer = ({ socket }) =>
    void socket.write(streamHead + chunk(chatEvent({ role: 'assistant', content: '' })));
  const routed = await start(t, [role, second]);
  const body = { model: 'm', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
  const answer = await post(routed.gateway.port, '/v1/messages', body);
  t.match(answer.body, 'second');
  t.equal(answer.body.match(/message_start/g)?.length, 2, 'one event, which has its name twice');
  t.strictSame(routed.counts(), [1, 1]);
});

const opened = { type: 'response.created', response: { id: 'resp_opening', status: 'in_progress' } };
/** By protocol: where a client asks, its request, the events that open an answer, and the rest of one. */
const openings = {
  chat: {
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'hi' }] },
    opening:
      unnamed({ choices: [], prompt_filter_results: [] }) +
      chatEvent({ role: 'assistant', content: '', refusal: null, tool_calls: [] }),
    rest: chatEvent({ content: 'words' }) + chatEvent({}, 'stop') + doneEvent,
  },
  responses: {
    path: '/v1/responses',
    body: { store: false, input: 'hi' },
    opening: named(opened) + named({ ...opened, type: 'response.in_progress' }),
    rest:
      named({ type: 'response.output_text.delta', delta: 'words' }) +
      named({ type: 'response.completed', response: { status: 'completed', output: [] } }),
  },
  messages: {
    path: '/v1/messages',
    body: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
    opening:
      named({ type: 'message_start', message: { id: 'msg_opening', usage: { input_tokens: 3 } } }) +
      named({ type: 'ping' }) +
      named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    rest:
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'words' } }) +
      named({ type: 'message_stop' }),
  },
  generateContent: {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: { contents: [{ parts: [{ text: 'hi' }] }] },
    opening: unnamed({ usageMetadata: { promptTokenCount: 3 }, modelVersion: 'opening' }),
    rest: unnamed({ candidates: [{ content: { parts: [{ text: 'words' }] }, finishReason: 'STOP' }] }),
  },
};

for (const [protocol, { path, body, opening, rest }] of Object.entries(openings)) {
  const plan = {
    upstream: { kind: protocol === 'responses' ? 'chat' : protocol },
    ...(protocol === 'responses' ? { every: { responses: true } } : {}),
  };
  const call = path.includes('m:') ? body : { model: 'm', stream: true, ...body };

  test(`a target that only opens its answer is given up, though it needs no translation: ${protocol}`, async (t) => {
    const opens: Answer = ({ socket }) => void socket.write(streamHead + chunk(opening));
    const answers: Answer = streamHead + chunk(opening.replaceAll('opening', 'second') + rest) + lastChunk;
    const routed = await start(t, [opens, answers], plan);
    const answer = await post(routed.gateway.port, path, call);
    t.equal(answer.body, opening.replaceAll('opening', 'second') + rest);
    t.strictSame(routed.counts(), [1, 1]);
  });

  test(`what opens an answer is passed on as it came with what follows: ${protocol}`, async (t) => {
    const pieces: Answer = async ({ socket }) => {
      socket.write(streamHead + chunk(opening.slice(0, 30)));
      for (const piece of [opening.slice(30), rest]) {
        await after(20);
        socket.write(chunk(piece));
      }
      socket.write(lastChunk);
    };
    const routed = await start(t, [pieces, silent], { ...plan, firstTokenMs: 600_000 });
    t.equal((await post(routed.gateway.port, path, call)).body, opening + rest);
  });
}

test('what opens the answer of the last target is passed on at once', async (t) => {
  for (const { path, body, opening } of [openings.chat, openings.messages]) {
    const kind = path.includes('messages') ? 'messages' : 'chat';
    const refuses = errorAnswer(500);
    const routed = await start(t, [refuses, silent], { upstream: { kind }, firstTokenMs: 600_000 });
    const socket = await open(routed.gateway.port, postBytes(path, { model: 'm', stream: true, ...body }));
    const request = await routed.upstreams[1]?.request(0);
    request?.socket.write(streamHead + chunk(opening));
    let text = '';
    for await (const piece of socket) {
      text += String(piece);
      if (text.includes(opening)) break;
    }
    t.match(text, 'HTTP/1.1 200', kind);
  }
});

test('a stream that is complete without content is passed on with its usage', async (t) => {
  const role = chatEvent({ role: 'assistant', content: '' });
  for (const pieces of [[role, doneEvent], [role + usageEvent + doneEvent], [role, usageEvent, doneEvent]]) {
    const empty: Answer = async ({ socket }) => {
      socket.write(streamHead);
      for (const piece of pieces) {
        socket.write(chunk(piece));
        await after(10);
      }
      socket.write(lastChunk);
    };
    const routed = await start(t, [empty, errorAnswer(500)], { firstTokenMs: 600_000 });
    const asksUsage = { ...stream, stream_options: { include_usage: true } };
    t.match(await routed.ask({}, asksUsage), { status: 200, body: pieces.join('') });
    t.strictSame(routed.counts(), [1, 0]);
    const line = await routed.gateway.line(({ msg }) => msg === 'request');
    t.match(line, { outcome: 'complete', ...(pieces.join('').includes('usage') ? { inputTokens: 3 } : {}) });
  }
});

test('what a target reports before it is given up is what giving it up has cost', async (t) => {
  const { opening, path, body } = openings.messages;
  const told = opening.replace('"input_tokens":3', '"input_tokens":5000,"cache_read_input_tokens":100');
  const opens: Answer = ({ socket }) => void socket.write(streamHead + chunk(told));
  const answers: Answer = streamHead + chunk(opening + openings.messages.rest) + lastChunk;
  const routed = await start(t, [opens, answers], { upstream: { kind: 'messages' } });
  await post(routed.gateway.port, path, { model: 'm', stream: true, ...body });
  const line = await routed.gateway.line(({ msg }) => msg === 'request');
  t.match(line, { outcome: 'complete', givenUpInputTokens: 5100 });
});

test('an error after the opening of an answer moves the call on', async (t) => {
  const { opening, rest, path, body } = openings.messages;
  const fails = named({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } });
  const answers = [
    streamHead + chunk(opening + fails) + lastChunk,
    streamHead + chunk(opening + rest) + lastChunk,
  ];
  const routed = await start(t, answers, { upstream: { kind: 'messages' }, firstTokenMs: 600_000 });
  const answer = await post(routed.gateway.port, path, { model: 'm', stream: true, ...body });
  t.equal(answer.body, opening + rest);
  t.strictSame(routed.counts(), [1, 1]);
});

test('a target that is given up so is left alone when it does it again and again', async (t) => {
  const routed = await start(t, [silent, second], { routing: { failures: 1, openMs: 600_000 } });
  t.match(await routed.ask({}, stream), { status: 200 });
  t.match(await routed.ask({}, stream), { status: 200 });
  t.strictSame(routed.counts(), [1, 2]);
  t.match(routed.counted('gateway_upstream_attempts_total'), { 'u0/m timeout': 1 });
});

test('an event in time keeps its target, however slow the rest is', async (t) => {
  const routed = await start(t, [silent, second], { firstTokenMs: 1500 });
  const asked = routed.ask({}, stream);
  const request = await routed.upstreams[0]?.request(0);
  request?.socket.write(streamHead + chunk(chatEvent({ content: 'first' })));
  await after(1600);
  request?.socket.write(chunk(chatEvent({}, 'stop') + doneEvent) + lastChunk);
  t.match(await asked, { status: 200, body: /first/ });
  t.strictSame(routed.counts(), [1, 0]);
});

test('an event that has come when a blocked event loop goes on is in time', async (t) => {
  const routed = await start(t, [silent, second], { firstTokenMs: 1000 });
  const asked = routed.ask({}, stream);
  const request = await routed.upstreams[0]?.request(0);
  request?.socket.write(streamOf('first'));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
  t.match(await asked, { status: 200, body: /first/ });
  t.strictSame(routed.counts(), [1, 0]);
});

test('a target of its own time has that, and the last one all the time that there is', async (t) => {
  const routed = await start(t, [silent, silent], { firstTokenMs: 600_000, own: 10 });
  const asked = routed.ask({}, stream);
  const request = await routed.upstreams[1]?.request(0);
  await untilCut(routed.upstreams[0]);
  request?.socket.write(streamOf('second'));
  t.match(await asked, { status: 200, body: /second/ });
});

test('a target is kept where there is no other', async (t) => {
  const alone = await start(t, [silent], { firstTokenMs: 10 });
  const asked = alone.ask({}, stream);
  const request = await alone.upstreams[0]?.request(0);
  await after(50);
  request?.socket.write(streamOf('late'));
  t.match(await asked, { status: 200, body: /late/ });
});

test('a target is kept where the other could not be told what is asked', async (t) => {
  const routed = await start(t, [silent, second], { firstTokenMs: 10, second: { responses: 'only' } });
  const asked = routed.ask({}, { ...stream, n: 2 });
  const request = await routed.upstreams[0]?.request(0);
  await after(50);
  request?.socket.write(streamOf('late'));
  t.match(await asked, { status: 200, body: /late/ });
  t.strictSame(routed.counts(), [1, 0]);
});

test('what is kept at an upstream, and what is no stream, goes nowhere else for it', async (t) => {
  const routed = await start(t, [silent, second], { firstTokenMs: 10 });
  const calls = [
    [{ ...stream, store: true }, streamOf('stored')],
    [{}, goodAnswer],
  ] as const;
  for (const [index, [change, answer]] of calls.entries()) {
    const asked = routed.ask({}, change);
    const request = await routed.upstreams[0]?.request(index);
    await after(50);
    request?.socket.write(answer);
    t.match(await asked, { status: 200 });
  }
  t.strictSame(routed.counts(), [2, 0]);
});

test('a client that leaves while the target has time goes to no other', async (t) => {
  const routed = await start(t, [silent, second], { firstTokenMs: 2000 });
  const socket = await open(routed.gateway.port, chatRequest(streamed));
  await routed.upstreams[0]?.request(0);
  socket.destroy();
  t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { outcome: 'client_gone' });
  await after(2100);
  t.strictSame(routed.counts(), [1, 0]);
});
