import { setTimeout as after } from 'node:timers/promises';
import { test } from 'tap';
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

for (const [kind, [path, body]] of sameProtocol)
  test(`a client of the same protocol gets no sign of life that is not JSON before its answer: ${kind}`, async (t) => {
    const events = answers[kind] ?? [];
    const own = 'event: codex.rate_limits\ndata: {"type":"codex.rate_limits"}\n\n';
    const early = `: comment\n\n${signs.join('')}event: ping\n\n`;
    for (const pieces of [[early, ...events], [early + events.join('')]]) {
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
      t.equal(answer.body, `: comment\n\n${own}${events.join('')}`);
    }
  });
