import { test } from 'tap';
import type { Answer, AnswerChoice, AnswerPart } from '../../../../src/conversation/answer.js';
import { carryInId } from '../../../../src/conversation/carrying-id.js';
import type { AnswerContext } from '../../../../src/conversation/codec.js';
import { noSignature } from '../../../../src/conversation/signature.js';
import { messagesCodec } from '../../../../src/protocols/messages/index.js';
import { refusalOf } from '../../../support/refusal.js';
import { context, source, token } from '../samples.js';

const usage = { input: 20, output: 9, cached: 8, cacheWritten: 2, reasoning: 4 };
const answerOf = (parts: readonly AnswerPart[], more: Partial<AnswerChoice> = {}): Answer => ({
  choices: [{ parts, finish: 'stop', stopSequence: null, ...more }],
  usage,
});
const written = (answer: Answer, changes: Partial<AnswerContext> = {}) =>
  JSON.parse(messagesCodec.encodeAnswer(answer, { ...context, ...changes }));
const call = { kind: 'toolCall', id: 'toolu_1', name: 'f', input: '{"a":1}', custom: false, at: '' } as const;
const text = { kind: 'text', text: 'hi' } as const;

test('an answer is read', async (t) => {
  const body = {
    id: 'msg_9',
    type: 'message',
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'text', text: '' },
      { type: 'text', text: 'hi', citations: [{ type: 'char_location' }] },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 }, caller: { type: 'direct' } },
      { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      output_tokens: 9,
      cache_read_input_tokens: 8,
      cache_creation_input_tokens: 2,
      output_tokens_details: { thinking_tokens: 4 },
    },
  };
  t.same(messagesCodec.decodeAnswer(body, source), {
    choices: [
      {
        parts: [
          { kind: 'reasoning', text: 'hm', signature: token('s') },
          { kind: 'reasoning', text: '', signature: token('enc', true) },
          text,
          call,
          { ...call, id: 'toolu_2', name: 'g', input: '{}' },
        ],
        finish: 'toolCalls',
        stopSequence: null,
      },
    ],
    usage,
  });
});

test('why it ended is read', async (t) => {
  const finish = (stop_reason: unknown, content: object[] = []) =>
    messagesCodec.decodeAnswer({ content, stop_reason, stop_sequence: '#' }, source).choices[0];
  const tool = [{ type: 'tool_use', id: 'x', name: 'f', input: {} }];
  t.match(finish('end_turn'), { finish: 'stop' });
  t.match(finish('end_turn', tool), { finish: 'toolCalls' });
  t.match(finish('tool_use'), { finish: 'stop' }, 'of tools that the upstream runs');
  t.match(finish('max_tokens', tool), { finish: 'length' });
  t.match(finish('model_context_window_exceeded'), { finish: 'length' });
  t.match(finish('stop_sequence'), { finish: 'stopSequence', stopSequence: '#' });
  t.match(finish('refusal'), { finish: 'filtered' });
  t.match(finish('pause_turn'), { finish: 'paused' });
  t.match(finish('new_reason'), { finish: 'other' });
  t.match(finish(null), { finish: 'other' });
});

test('what is no answer is an error of the upstream', async (t) => {
  for (const body of [{}, { content: null }, { choices: [] }, { content: 'hi' }])
    t.match(
      refusalOf(() => messagesCodec.decodeAnswer(body, source)),
      { kind: 'upstream_error' },
      JSON.stringify(body),
    );
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } };
  t.match(
    refusalOf(() => messagesCodec.decodeAnswer(error, source)),
    { kind: 'overloaded', message: 'busy' },
  );
});

test('odd members of an answer count as absent', async (t) => {
  const content = [
    null,
    5,
    {},
    { type: 'text', text: 5 },
    { type: 'thinking' },
    { type: 'redacted_thinking', data: null },
    { type: 'tool_use', input: [] },
    { type: 'tool_use', name: 'f', input: 'x', id: 7 },
  ];
  t.same(messagesCodec.decodeAnswer({ content, usage: [], stop_reason: 7, stop_sequence: 7 }, source), {
    choices: [{ parts: [{ ...call, id: '', input: '{}' }], finish: 'toolCalls', stopSequence: null }],
    usage: null,
  });
  t.equal(messagesCodec.decodeAnswer({ content, usage: { input_tokens: '5' } }, source).usage, null);
  const counted = JSON.parse('{"input_tokens":1.5,"output_tokens":1e400,"cache_read_input_tokens":1e300}');
  t.same(
    messagesCodec.decodeAnswer({ content, usage: counted }, source).usage,
    { input: 1, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 },
    'counts are whole, and numbers that JSON can say',
  );
});

test('an answer is written', async (t) => {
  const answer = answerOf(
    [
      { kind: 'reasoning', text: 'hm', signature: token('s') },
      text,
      { kind: 'refusal', text: 'no' },
      call,
      { ...call, id: '', input: '{}' },
    ],
    { finish: 'toolCalls' },
  );
  t.same(written(answer), {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 'hm', signature: token('s') },
      { type: 'text', text: 'hi' },
      { type: 'text', text: 'no' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
      { type: 'tool_use', id: 'toolu_1_1', name: 'f', input: {} },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      output_tokens: 9,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 8,
      output_tokens_details: { thinking_tokens: 4 },
    },
  });
  t.same(written({ ...answerOf([text]), usage: null }).usage, { input_tokens: 0, output_tokens: 0 });
});

test('reasoning that is not shown leaves its signature behind', async (t) => {
  const parts: AnswerPart[] = [
    { kind: 'reasoning', text: 'hm', signature: token('s') },
    { kind: 'reasoning', text: 'hm', signature: null },
    { kind: 'reasoning', text: '', signature: token('enc', true) },
  ];
  t.same(written(answerOf(parts), { showReasoning: false }).content, [
    { type: 'thinking', thinking: '', signature: token('s') },
    { type: 'redacted_thinking', data: token('enc', true) },
  ]);
  t.match(written(answerOf(parts)).content, [
    { thinking: 'hm' },
    { thinking: 'hm', signature: noSignature },
    { type: 'redacted_thinking', data: token('enc', true) },
  ]);
});

test('why it ended is written', async (t) => {
  const ended = (more: Partial<AnswerChoice>, parts: AnswerPart[] = [text]) => written(answerOf(parts, more));
  t.match(ended({ finish: 'stop' }), { stop_reason: 'end_turn', stop_sequence: null });
  t.match(ended({ finish: 'stop' }, [call]), { stop_reason: 'tool_use' });
  t.match(ended({ finish: 'stopSequence', stopSequence: '#' }), {
    stop_reason: 'stop_sequence',
    stop_sequence: '#',
  });
  t.match(ended({ finish: 'length' }), { stop_reason: 'max_tokens' });
  t.match(ended({ finish: 'filtered' }, []), { stop_reason: 'refusal', content: [] });
  t.match(ended({ finish: 'paused' }), { stop_reason: 'pause_turn' });
  t.match(ended({ finish: 'other' }), { stop_reason: 'end_turn' });
  t.match(
    ended({ finish: 'toolCalls' }),
    { stop_reason: 'end_turn' },
    'without a call there is none to wait for',
  );
});

test('arguments that are no object are put into one, unless they were cut', async (t) => {
  const broken = { ...call, input: '{"a":' };
  t.match(written(answerOf([broken])), { content: [{ type: 'tool_use', input: { input: '{"a":' } }] });
  t.match(written(answerOf([text, broken], { finish: 'length' })), {
    stop_reason: 'max_tokens',
    content: { length: 1 },
  });
  const none = { ...call, input: '{}' };
  t.match(written(answerOf([text, none], { finish: 'length' })), { content: { length: 1 } });
  t.match(written(answerOf([none, text], { finish: 'length' })), { content: { length: 2 } });
});

test('the tokens that a call carries stand behind an id that the protocol takes', async (t) => {
  const idOf = (id: string) => written(answerOf([{ ...call, id }])).content[0].id;
  const carrying = carryInId('functions.f:0', [token('s')]) ?? '';
  const tokens = carrying.slice('functions.f:0'.length);
  t.match(idOf(carrying), /^gwid_[A-Za-z0-9_-]+$/);
  t.equal(idOf(carrying), idOf('functions.f:0') + tokens);
  t.equal(idOf(carryInId('toolu_1', [token('s')]) ?? ''), `toolu_1${tokens}`);
});
