import { test } from 'tap';
import { atOnce } from '../../src/wire/steps.js';
import { readData, readEvents } from '../support/events.js';
import { post, startTranslated } from '../support/translated.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../support/upstream.js';

/*
 * Chat clients that declare `functions` read calls only from `function_call`, which has one call and no id
 * (https://platform.openai.com/docs/api-reference/chat/create).
 */

const body = {
  model: 'm',
  max_tokens: 50,
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{"city":"Oslo"}' } },
    { role: 'function', name: 'weather', content: '3 degrees' },
  ],
  functions: [{ name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }],
  function_call: 'auto',
};

const calls = ['Rome', 'Nice'].map((city, index) => ({
  id: `call_${index}`,
  name: 'weather',
  args: { city },
}));
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const named = (type: string, rest: object) => `event: ${type}\n${event({ type, ...rest })}`;
const usage = { input_tokens: 1, output_tokens: 1 };
const candidates = [
  {
    index: 0,
    finishReason: 'STOP',
    content: { role: 'model', parts: calls.map((functionCall) => ({ functionCall })) },
  },
];
const items = calls.map(({ id, name, args }) => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: JSON.stringify(args),
  status: 'completed',
}));
const response = { id: 'resp_1', object: 'response', status: 'completed', output: items, usage };

/** Answers of each kind of upstream with two calls. */
const answers: Readonly<Record<string, { readonly whole: object; readonly stream: string }>> = {
  messages: {
    whole: {
      type: 'message',
      role: 'assistant',
      content: calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args })),
      stop_reason: 'tool_use',
      usage,
    },
    stream:
      named('message_start', { message: { usage } }) +
      calls
        .map(
          ({ id, name, args }, index) =>
            named('content_block_start', {
              index,
              content_block: { type: 'tool_use', id, name, input: {} },
            }) +
            named('content_block_delta', {
              index,
              delta: { type: 'input_json_delta', partial_json: JSON.stringify(args) },
            }) +
            named('content_block_stop', { index }),
        )
        .join('') +
      named('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } }) +
      named('message_stop', {}),
  },
  generateContent: { whole: { candidates }, stream: event({ candidates }) },
  responses: {
    whole: response,
    stream:
      named('response.created', { response: { ...response, status: 'in_progress', output: [] } }) +
      items
        .map(
          (item, output_index) =>
            named('response.output_item.added', {
              output_index,
              item: { ...item, arguments: '', status: 'in_progress' },
            }) +
            named('response.function_call_arguments.delta', {
              output_index,
              item_id: item.id,
              delta: item.arguments,
            }) +
            named('response.output_item.done', { output_index, item }),
        )
        .join('') +
      named('response.completed', { response }),
  },
};

interface Delta {
  readonly function_call?: { readonly name?: string; readonly arguments?: string };
  readonly tool_calls?: unknown;
}

for (const [kind, { whole, stream }] of Object.entries(answers))
  test(`a client that declares functions gets the first call as function_call from a ${kind} upstream`, async (t) => {
    const { port, upstream } = await startTranslated(t, {
      kind: kind === 'responses' ? 'chat' : kind,
      target: kind === 'responses' ? { responses: 'only' } : {},
      answer: jsonAnswer(200, JSON.stringify(whole)),
    });
    const answer = await post(port, '/v1/chat/completions', body);
    t.equal(answer.status, 200, answer.body);
    const call = { name: 'weather', arguments: '{"city":"Rome"}' };
    const [choice] = JSON.parse(answer.body).choices;
    t.match(choice, { finish_reason: 'function_call', message: { content: null, function_call: call } });
    t.notOk('tool_calls' in choice.message);
    t.notMatch(answer.head, 'parallel_tool_calls', 'the client has not set it');
    t.match(upstream.requests[0]?.body.toString(), '3 degrees');

    upstream.answer = streamHead + chunk(stream) + lastChunk;
    const choices = readEvents((await post(port, '/v1/chat/completions', { ...body, stream: true })).body)
      .filter(({ data }) => data !== '[DONE]')
      .flatMap((each) => (readData(each) as { choices: { delta: Delta; finish_reason: unknown }[] }).choices);
    const deltas = choices.flatMap(({ delta }) => delta.function_call ?? []);
    t.equal(deltas.map(({ name = '' }) => name).join(''), 'weather');
    t.strictSame(JSON.parse(deltas.map((delta) => delta.arguments ?? '').join('')), { city: 'Rome' });
    t.notOk(choices.some(({ delta }) => 'tool_calls' in delta));
    t.equal(choices.at(-1)?.finish_reason, 'function_call');
  });

const thinking = { type: 'thinking', thinking: 'hm', signature: 'U0lH' };
const signed = {
  ...answers.messages?.whole,
  content: [thinking, { type: 'tool_use', id: 'c', name: 'weather', input: {} }],
};
const signedStream =
  named('message_start', { message: { usage } }) +
  [
    [
      { ...thinking, thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'signature_delta', signature: 'U0lH' },
    ],
    [
      { type: 'tool_use', id: 'c', name: 'weather', input: {} },
      { type: 'input_json_delta', partial_json: '{}' },
    ],
  ]
    .map(
      ([content_block, ...deltas], index) =>
        named('content_block_start', { index, content_block }) +
        deltas.map((delta) => named('content_block_delta', { index, delta })).join('') +
        named('content_block_stop', { index }),
    )
    .join('') +
  named('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } }) +
  named('message_stop', {});

test('the signature that function_call has no place for is told to be lost', async (t) => {
  const { port, upstream, gateway } = await startTranslated(t, {
    kind: 'messages',
    answer: jsonAnswer(200, JSON.stringify(signed)),
  });
  for (const stream of [false, true]) {
    if (stream) upstream.answer = streamHead + chunk(signedStream) + lastChunk;
    const answer = await post(port, '/v1/chat/completions', { ...body, stream });
    t.equal(answer.status, 200, answer.body);
    t.match(answer.body, '"function_call"');
    t.notMatch(answer.body, '__thought__');
    t.match(
      atOnce(gateway.inspectSteps()).requests[0],
      { lostInAnswer: ['signature'] },
      `streamed: ${stream}`,
    );
  }
});
