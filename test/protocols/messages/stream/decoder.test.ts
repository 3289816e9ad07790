import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { LeftOut } from '../../../../src/conversation/left-out.js';
import { messagesCodec } from '../../../../src/protocols/messages/index.js';
import { cases, fc } from '../../../support/seed.js';
import { decodeStream, source, token } from '../samples.js';

const start = { type: 'message_start', message: { usage: { input_tokens: 5, output_tokens: 1 } } };
const startUsage = { input: 5, output: 1, cached: 0, cacheWritten: 0, reasoning: 0 };
const began = { kind: 'start', usage: startUsage };
const stop = { type: 'message_stop' };
const delta = (
  stop_reason: unknown,
  usage: object = { output_tokens: 9 },
  stop_sequence: unknown = null,
) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence },
  usage,
});
const ended = (reason: string) => [
  { kind: 'usage', usage: { ...startUsage, output: 9 } },
  { kind: 'finish', choice: 0, reason, stopSequence: null },
  { kind: 'end' },
];
const open = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
});
const piece = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
const close = (index: number) => ({ type: 'content_block_stop', index });
const callStart = { kind: 'callStart', choice: 0, call: 0, id: 'toolu_1', name: 'f', custom: false };
const callArguments = (text: string, call = 0) => ({ kind: 'callArguments', choice: 0, call, text });
const callEnd = { kind: 'callEnd', choice: 0, call: 0 };
const tool = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };

test('thinking, text and a call are read in order', async (t) => {
  t.same(
    decodeStream(
      start,
      { type: 'ping' },
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      piece(0, { type: 'thinking_delta', thinking: 'hm' }),
      piece(0, { type: 'signature_delta', signature: 's' }),
      close(0),
      open(1, { type: 'text', text: '' }),
      piece(1, { type: 'text_delta', text: 'h' }),
      piece(1, { type: 'citations_delta', citation: {} }),
      piece(1, { type: 'text_delta', text: 'i' }),
      close(1),
      open(2, tool),
      piece(2, { type: 'input_json_delta', partial_json: '' }),
      piece(2, { type: 'input_json_delta', partial_json: '{"a"' }),
      piece(2, { type: 'input_json_delta', partial_json: ':1}' }),
      close(2),
      delta('tool_use'),
      stop,
    ),
    [
      began,
      { kind: 'reasoning', choice: 0, text: 'hm' },
      { kind: 'signature', choice: 0, signature: token('s') },
      { kind: 'text', choice: 0, text: 'h' },
      { kind: 'text', choice: 0, text: 'i' },
      callStart,
      callArguments('{"a"'),
      callArguments(':1}'),
      callEnd,
      ...ended('toolCalls'),
    ],
  );
});

test('redacted thinking is a signature', async (t) => {
  t.same(
    decodeStream(
      start,
      open(0, { type: 'redacted_thinking', data: 'enc' }),
      close(0),
      delta('end_turn'),
      stop,
    ),
    [began, { kind: 'signature', choice: 0, signature: token('enc', true) }, ...ended('stop')],
  );
});

test('arguments that come with the start of a call are taken where no others follow', async (t) => {
  const filled = { ...tool, input: { a: 1 } };
  t.same(decodeStream(start, open(0, filled), close(0), delta('end_turn'), stop), [
    began,
    callStart,
    callArguments('{"a":1}'),
    callEnd,
    ...ended('toolCalls'),
  ]);
  const deltas = piece(0, { type: 'input_json_delta', partial_json: '{}' });
  t.same(decodeStream(start, open(0, filled), deltas, close(0), delta('tool_use'), stop), [
    began,
    callStart,
    callArguments('{}'),
    callEnd,
    ...ended('toolCalls'),
  ]);
});

test('a call that is not closed ends before the answer does', async (t) => {
  const second = { ...tool, id: '' };
  t.same(decodeStream(start, open(0, tool), open(1, second), delta('tool_use'), stop), [
    began,
    callStart,
    { ...callStart, call: 1, id: '' },
    { kind: 'usage', usage: { ...startUsage, output: 9 } },
    callEnd,
    { ...callEnd, call: 1 },
    { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null },
    { kind: 'end' },
  ]);
});

test('what waits for the end of a block is bound', async (t) => {
  const calls = Array.from({ length: 1025 }, (_, index) => open(index, { ...tool, id: `t${index}` }));
  t.match(decodeStream(start, ...calls).at(-1), { kind: 'error', error: { kind: 'upstream_error' } });
  const block = { ...tool, input: { text: 'x'.repeat(20 * 1024 * 1024) } };
  t.match(decodeStream(start, open(0, block), close(0), open(1, block), close(1)).at(-2), {
    kind: 'callEnd',
  });
  t.match(decodeStream(start, open(0, block), open(1, block)).at(-1), { kind: 'error' });
  const lost = new LeftOut();
  const decoder = messagesCodec.createDecoder({ ...source, searches: true, lost });
  const out: StreamEvent[] = [];
  const cite = (letter: string) => {
    const url = `https://x/${letter.repeat(400 * 1024)}`;
    return piece(0, { type: 'citations_delta', citation: { type: 'web_search_result_location', url } });
  };
  for (const event of [
    start,
    open(0, { type: 'text', text: 'a' }),
    cite('a'),
    cite('b'),
    cite('c'),
    close(0),
  ])
    decoder.decode(null, JSON.stringify(event), out);
  t.equal(out.filter(({ kind }) => kind === 'citation').length, 2);
  t.strictSame(lost.names, ['citations']);
});

test('tools that the upstream runs, and events of newer versions, are ignored', async (t) => {
  t.same(
    decodeStream(
      start,
      open(0, { type: 'server_tool_use', id: 's', name: 'code_execution', input: {} }),
      piece(0, { type: 'input_json_delta', partial_json: '{"q":1}' }),
      close(0),
      open(1, { type: 'code_execution_tool_result', tool_use_id: 's', content: [] }),
      close(1),
      piece(1, { type: 'mood_delta', mood: 'good' }),
      { type: 'message_mood', mood: 'good' },
      { type: 'mood' },
      delta('end_turn'),
      stop,
      '[DONE]',
      piece(1, { type: 'text_delta', text: 'late' }),
    ),
    [began, ...ended('stop')],
  );
});

test('the end says why and with what', async (t) => {
  t.match(decodeStream(start, delta('stop_sequence', { output_tokens: 9 }, '#'), stop), [
    began,
    {},
    { kind: 'finish', reason: 'stopSequence', stopSequence: '#' },
    { kind: 'end' },
  ]);
  const totals = { input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 9 };
  t.match(decodeStream(start, delta(null, { output_tokens: 4 }), delta('max_tokens', totals), stop), [
    began,
    { kind: 'usage', usage: { input: 5, output: 4 } },
    { kind: 'usage', usage: { input: 10, output: 9, cached: 3 } },
    { kind: 'finish', reason: 'length' },
    { kind: 'end' },
  ]);
  t.match(decodeStream(start, stop), [
    began,
    { kind: 'finish', reason: 'other' },
    { kind: 'usage', usage: { input: 5, output: 0 } },
    { kind: 'end' },
  ]);
});

test('an error event ends the stream', async (t) => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } };
  t.match(decodeStream(start, error, stop), [
    began,
    { kind: 'error', error: { kind: 'overloaded', message: 'busy' } },
  ]);
  t.match(decodeStream({ error: { message: 'bad' } }), [
    { kind: 'error', error: { kind: 'upstream_error', message: 'bad' } },
  ]);
});

test('bytes that end too early are an error', async (t) => {
  t.match(decodeStream(), [{ kind: 'error', error: { kind: 'upstream_error' } }]);
  const events = decodeStream(start, delta('end_turn'));
  t.match(events.at(-1), { kind: 'error', error: { kind: 'upstream_error' } });
  t.equal(events.filter(({ kind }) => kind === 'end').length, 0);
});

test('events of another protocol are an error that says what came', async (t) => {
  const cases: [object | string, RegExp][] = [
    [{ choices: [] }, /'choices'/],
    [{ candidates: [] }, /'candidates'/],
    [{ type: 'response.created' }, /response\.created/],
    ['[1]', /not a JSON object/],
    ['half {', /not a JSON object/],
    [{}, /without a type/],
  ];
  for (const [event, message] of cases) {
    t.match(decodeStream(event), [{ kind: 'error', error: { kind: 'unsupported_stream_event', message } }]);
  }
});

test('events of a server’s own are passed over, first or in the middle', async (t) => {
  const own = { type: 'codex.rate_limits' };
  t.strictSame(decodeStream(own, start, own, delta('end_turn'), own), decodeStream(start, delta('end_turn')));
});

test('an event without its type is known by its name', async (t) => {
  const decoder = messagesCodec.createDecoder(source);
  const out: object[] = [];
  decoder.decode('message_start', '{"message":null}', out as never);
  t.same(out, [{ kind: 'start', usage: null }]);
});

test('whatever comes, nothing is thrown and one end or error comes last', async (t) => {
  const types = [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
    'error',
    'ping',
    'text',
    'thinking',
    'tool_use',
    'redacted_thinking',
    'text_delta',
    'input_json_delta',
    'signature_delta',
    'thinking_delta',
  ];
  const keys = [
    'message',
    'content_block',
    'delta',
    'index',
    'usage',
    'text',
    'partial_json',
    'name',
    'input',
    'error',
  ];
  const { event } = fc.letrec((tie) => ({
    event: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.constantFrom<unknown>(null, 0, 'x', '', true, []),
      fc
        .tuple(fc.constantFrom(...types), fc.dictionary(fc.constantFrom(...keys), tie('event')))
        .map(([type, members]) => ({ ...members, type })),
    ),
  }));
  fc.assert(
    fc.property(fc.array(event), (events) => {
      const out = decodeStream(start, ...events.map((each) => JSON.stringify(each)));
      const last = out.findIndex(({ kind }) => kind === 'end' || kind === 'error');
      return last === out.length - 1 && out.filter(({ kind }) => kind === 'finish').length <= 1;
    }),
    { numRuns: cases(1000) },
  );
  t.pass();
});
