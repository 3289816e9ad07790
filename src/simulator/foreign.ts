import type { Reply, Step } from './reply.js';

const text = 'Simulated answer.';

const message = {
  id: 'msg_simulated',
  type: 'message',
  role: 'assistant',
  model: 'sim-text',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};
const messageEvents = [
  { type: 'message_start', message },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 4 },
  },
  { type: 'message_stop' },
];

const completion = { id: 'chatcmpl-simulated', created: 1_700_000_000, model: 'sim-text' };
const chunk = (delta: object, finish: string | null): string =>
  JSON.stringify({
    ...completion,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  });

/** What an upstream of each protocol answers whatever it is asked. */
const answers = {
  messages: {
    events: messageEvents.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    body: JSON.stringify({ ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
  },
  chat: {
    events: [
      chunk({ role: 'assistant', content: '' }, null),
      chunk({ content: text }, null),
      chunk({}, 'stop'),
      '[DONE]',
    ].map((data) => `data: ${data}\n\n`),
    body: JSON.stringify({
      ...completion,
      object: 'chat.completion',
      choices: [
        { index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 },
    }),
  },
};

/** What an upstream of another protocol would answer. */
export function foreign(reply: Reply): Reply {
  const { events, body } = answers[reply.manner.foreign];
  return reply.stream
    ? { ...reply, length: null, steps: events.map((bytes): Step => ({ kind: 'data', bytes, tokens: 1 })) }
    : { ...reply, length: Buffer.byteLength(body), steps: [{ kind: 'data', bytes: body, tokens: 0 }] };
}
