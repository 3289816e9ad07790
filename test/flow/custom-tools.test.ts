import { test } from 'tap';
import { readData, readEvents } from '../support/events.js';
import { post, startTranslated } from '../support/translated.js';
import { chatEvent, chunk, doneEvent, jsonAnswer, lastChunk, streamHead } from '../support/upstream.js';

/*
 * Tools of free text of a chat client, on upstreams that know only functions. For responses clients see codex.test.ts.
 */

const input = '*** Begin Patch\n+"ä" \\ \u{1f5fc}';
const wrapped = JSON.stringify({ input });
const custom = { type: 'custom', custom: { name: 'apply_patch', description: 'Edits files.' } };
const body = {
  model: 'm',
  max_tokens: 50,
  messages: [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_0', type: 'custom', custom: { name: 'apply_patch', input: 'old' } }],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'patched' },
  ],
  tools: [custom, { type: 'function', function: { name: 'read', parameters: { type: 'object' } } }],
  tool_choice: { type: 'custom', custom: { name: 'apply_patch' } },
};

const pieces = [wrapped.slice(0, 4), wrapped.slice(4, 21), wrapped.slice(21)];
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const blockEvent = (type: string, rest: object) => `event: ${type}\n${event({ type, index: 0, ...rest })}`;
const toolUse = (given: unknown) => ({ type: 'tool_use', id: 'call_1', name: 'apply_patch', input: given });
const chatCall = (index: number | null, rest: object) => ({ ...(index === null ? {} : { index }), ...rest });

interface Answers {
  readonly whole: object;
  readonly stream: string;
  /** How its request says that this tool has to be called. */
  readonly choice: object;
}

const answers: Readonly<Record<string, Answers>> = {
  chat: {
    whole: {
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [
              chatCall(null, {
                id: 'call_1',
                type: 'function',
                function: { name: 'apply_patch', arguments: wrapped },
              }),
            ],
          },
        },
      ],
    },
    stream:
      chatEvent({
        tool_calls: [
          chatCall(0, { id: 'call_1', type: 'function', function: { name: 'apply_patch', arguments: '' } }),
        ],
      }) +
      pieces
        .map((piece) => chatEvent({ tool_calls: [chatCall(0, { function: { arguments: piece } })] }))
        .join('') +
      chatEvent({}, 'tool_calls') +
      doneEvent,
    choice: { tool_choice: { type: 'function', function: { name: 'apply_patch' } } },
  },
  messages: {
    whole: {
      type: 'message',
      role: 'assistant',
      content: [toolUse({ input })],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    stream:
      blockEvent('message_start', { message: { usage: { input_tokens: 1, output_tokens: 1 } } }) +
      blockEvent('content_block_start', { content_block: toolUse({}) }) +
      pieces
        .map((partial_json) =>
          blockEvent('content_block_delta', { delta: { type: 'input_json_delta', partial_json } }),
        )
        .join('') +
      blockEvent('content_block_stop', {}) +
      blockEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } }) +
      blockEvent('message_stop', {}),
    choice: { tool_choice: { type: 'tool', name: 'apply_patch' } },
  },
  generateContent: {
    whole: {
      candidates: [
        {
          index: 0,
          finishReason: 'STOP',
          content: {
            role: 'model',
            parts: [{ functionCall: { id: 'call_1', name: 'apply_patch', args: { input } } }],
          },
        },
      ],
    },
    stream: event({
      candidates: [
        {
          index: 0,
          finishReason: 'STOP',
          content: {
            role: 'model',
            parts: [{ functionCall: { id: 'call_1', name: 'apply_patch', args: { input } } }],
          },
        },
      ],
    }),
    choice: { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['apply_patch'] } } },
  },
};

interface CallDelta {
  readonly id?: string;
  readonly type?: string;
  readonly custom?: { readonly name?: string; readonly input?: string };
}

for (const [kind, { whole, stream, choice }] of Object.entries(answers)) {
  // Chat clients of a chat upstream are passed through, so a responses client stands for them below.
  if (kind !== 'chat')
    test(`a chat client’s tools of free text work on a ${kind} upstream`, async (t) => {
      const { port, upstream } = await startTranslated(t, {
        kind,
        answer: jsonAnswer(200, JSON.stringify(whole)),
      });
      const answer = await post(port, '/v1/chat/completions', body);
      t.equal(answer.status, 200, answer.body);
      const call = { id: 'call_1', type: 'custom', custom: { name: 'apply_patch', input } };
      t.match(JSON.parse(answer.body), {
        choices: [{ finish_reason: 'tool_calls', message: { tool_calls: [call] } }],
      });
      const sent = upstream.requests[0]?.body.toString() ?? '';
      t.match(JSON.parse(sent), choice);
      t.match(sent, '{"input":"old"}');
      t.match(sent, 'patched');
      t.notMatch(sent, /"custom"/);

      upstream.answer = streamHead + chunk(stream) + lastChunk;
      const events = readEvents((await post(port, '/v1/chat/completions', { ...body, stream: true })).body);
      const deltas = events
        .filter(({ data }) => data !== '[DONE]')
        .map((each) => readData(each) as { choices: { delta: { tool_calls?: CallDelta[] } }[] })
        .flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
      t.match(deltas[0], { id: 'call_1', type: 'custom', custom: { name: 'apply_patch' } });
      t.equal(deltas.map((delta) => delta.custom?.input ?? '').join(''), input);
    });
  test(`a responses client’s choice of a tool of free text is one of a function on a ${kind} upstream`, async (t) => {
    const { port, upstream } = await startTranslated(t, {
      kind,
      answer: jsonAnswer(200, JSON.stringify(whole)),
    });
    const answer = await post(port, '/v1/responses', {
      model: 'm',
      input: 'hi',
      tools: [{ type: 'custom', name: 'apply_patch' }],
      tool_choice: { type: 'custom', name: 'apply_patch' },
    });
    t.match(JSON.parse(answer.body), { output: [{ type: 'custom_tool_call', name: 'apply_patch', input }] });
    t.match(JSON.parse(upstream.requests[0]?.body.toString() ?? ''), choice);
  });
}
