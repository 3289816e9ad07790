import { setTimeout as after } from 'node:timers/promises';
import { test } from 'tap';
import { chat } from '../../../src/protocols/chat/index.js';
import { observed } from '../../stream/observed.js';
import { named, unnamed } from '../../support/events.js';
import { post, startTranslated } from '../../support/translated.js';
import { chatEvent, chunk, doneEvent, lastChunk, streamHead } from '../../support/upstream.js';

const message = { id: 'm', type: 'message', role: 'assistant' };
const part = { type: 'output_text', text: 'okay', annotations: [] };
const candidate = (text: string, finishReason?: string) =>
  unnamed({ candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason }] });

/** The events of an answer, by the kind of the upstream. */
const answers: Readonly<Record<string, readonly string[]>> = {
  chat: [chatEvent({ role: 'assistant', content: 'okay' }), chatEvent({}, 'stop'), doneEvent],
  responses: [
    named({ type: 'response.created', response: { status: 'in_progress' } }),
    named({ type: 'response.output_item.added', output_index: 0, item: message }),
    named({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'okay' }),
    named({
      type: 'response.completed',
      response: { status: 'completed', output: [{ ...message, content: [part] }] },
    }),
  ],
  messages: [
    named({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'okay' } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
    named({ type: 'message_stop' }),
  ],
  generateContent: [candidate('okay'), candidate('', 'STOP')],
};
const signs = [
  'data: \n\n',
  'event: ping\ndata: \n\n',
  'event: heartbeat\ndata: ok\n\n',
  'event: keepalive\ndata: null\n\n',
  'event: codex.rate_limits\ndata: {"type":"codex.rate_limits"}\n\n',
];

const messages = [{ role: 'user', content: 'hi' }];
const clients = [
  ['/v1/chat/completions', { model: 'm', stream: true, messages }],
  ['/v1/messages', { model: 'm', stream: true, max_tokens: 9, messages }],
  ['/v1/responses', { model: 'm', stream: true, store: false, input: 'hi' }],
  ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents: [{ parts: [{ text: 'hi' }] }] }],
] as const;

for (const [kind, events] of Object.entries(answers))
  test(`signs of life of a ${kind} upstream end no answer, first or in the middle`, async (t) => {
    const stream = events.map((event) => signs.join('') + event).join('');
    const { port } = await startTranslated(t, {
      kind: kind === 'responses' ? 'chat' : kind,
      target: kind === 'responses' ? { responses: 'only' } : {},
      answer: streamHead + chunk(stream) + lastChunk,
    });
    for (const [path, body] of clients) {
      const answer = await post(port, path, body);
      t.equal(answer.status, 200, path);
      t.match(answer.body, 'okay', path);
      t.notMatch(answer.body, /"error":\{|event: error/, path);
    }
  });

/** By the kind of the upstream: the client of its protocol. */
const sameProtocol = [
  ['chat', clients[0]],
  ['messages', clients[1]],
  ['responses', clients[2]],
  ['generateContent', clients[3]],
] as const;

/** What SDKs of the protocols take for JSON, and fail on. */
const unreadable = [
  ...signs.slice(0, 4),
  'data: ping\n\n',
  'event: ping\n\n',
  'retry: 3000\n\n',
  'id: 7\r\n\r\n',
  ': comment\nretry: 5\n\n',
];
const readable = [
  ': comment\n\n',
  ...signs.slice(4),
  ': another\n:\n\n',
  '\n\n',
  '\n: behind a blank line\n\n',
  'unknown: field\nevent:\nretry: soon\n\n',
  '\ufeff: behind a mark\n\n',
];
/** What may also be an error, or is too long to be looked at, once there is an answer. */
const silence = [
  'event: error\n\n',
  'event: error\ndata: \n\n',
  `event: ping\ndata: ${'x'.repeat(70_000)}\n\n`,
  'event: heartbeat\ndata: "candidates" "choices":[{ "response. "message_ "content_block_\n\n',
];

for (const [kind, [path, body]] of sameProtocol)
  test(`a client of the same protocol gets no sign of life that is not JSON: ${kind}`, async (t) => {
    const events = answers[kind] ?? [];
    const early = [readable[0], ...unreadable, ...silence, ...readable.slice(1)].join('');
    const between = [unreadable.join(''), ...readable, unreadable.join('')];
    const middle = events.flatMap((event) => [...between, event]);
    const expected = readable.join('') + events.map((event) => readable.join('') + event).join('');
    for (const pieces of [[early, ...middle], [early + middle.join('')]]) {
      const { port } = await startTranslated(t, {
        kind: kind === 'responses' ? 'chat' : kind,
        target: kind === 'responses' ? { responses: 'only' } : {},
        answer: async ({ socket }) => {
          socket.write(streamHead);
          for (const piece of pieces) {
            socket.write(chunk(piece));
            await after(10);
          }
          socket.write(lastChunk);
        },
      });
      const answer = await post(port, path, body);
      t.equal(answer.status, 200);
      t.equal(answer.body, expected);
    }
  });

test('a stream that begins with an error is none, whatever the error says', async (t) => {
  for (const [kind, [path, body]] of sameProtocol) {
    const events = answers[kind] ?? [];
    const { port } = await startTranslated(t, {
      kind: kind === 'responses' ? 'chat' : kind,
      target: kind === 'responses' ? { responses: 'only' } : {},
      answer: `${streamHead}${chunk(`event: error\ndata: ping\n\n${events.join('')}`)}${lastChunk}`,
    });
    const answer = await post(port, path, body);
    t.equal(answer.status, 502, kind);
  }
});

test('an event with the name of an error is passed on, though it has nothing to say', async (t) => {
  const transform = observed(chat);
  const opening = chatEvent({ role: 'assistant', content: '' });
  const failed = 'event: error\n\n';
  t.equal(transform.judge(Buffer.from(opening)), 'meaningful');
  t.equal(transform.pass(Buffer.from(opening + failed)).toString(), opening + failed);
});

test('the parts of an event that is larger than what is held are no signs of life', async (t) => {
  const transform = observed(chat);
  const large = chatEvent({ content: 'word '.repeat(1000) });
  const sign = Buffer.from('event: ping\n\n');
  const parts = [0, 1, 2].map((part) =>
    Buffer.from(large.slice((part * large.length) / 3, ((part + 1) * large.length) / 3)),
  );
  const [first, second, last] = parts as [Buffer, Buffer, Buffer];
  const opening = Buffer.from(chatEvent({ role: 'assistant', content: '' }));
  t.equal(transform.judge(opening), 'meaningful');
  t.equal(transform.pass(opening).toString(), opening.toString());
  const passed = [
    transform.pass(Buffer.concat([sign, first]), true),
    transform.pass(second, true),
    transform.pass(Buffer.concat([last, sign]), false),
  ].map(String);
  t.equal(passed.join(''), large);
});
