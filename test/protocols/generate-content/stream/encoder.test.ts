import { test } from 'tap';
import type { StreamEvent } from '../../../../src/conversation/answer.js';
import { noSignature, tagSignature, tokenAsBytes } from '../../../../src/conversation/signature.js';
import { GatewayError } from '../../../../src/errors.js';
import { generateContentCodec } from '../../../../src/protocols/generate-content/index.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { blocksOf, context, decodeBlocks, encodeEvents, usage } from '../samples.js';

const start: StreamEvent = { kind: 'start', usage: null };
const end: StreamEvent = { kind: 'end' };
const text = (text: string, choice = 0): StreamEvent => ({ kind: 'text', choice, text });
const signature = (signature: string): StreamEvent => ({ kind: 'signature', choice: 0, signature });
const finish = (reason: 'stop' | 'toolCalls' | 'length' | 'filtered', choice = 0): StreamEvent => ({
  kind: 'finish',
  choice,
  reason,
  stopSequence: null,
});
const call = (id: string, number = 0, ...pieces: string[]): StreamEvent[] => [
  { kind: 'callStart', choice: 0, call: number, id, name: 'f', custom: false },
  ...pieces.map((text): StreamEvent => ({ kind: 'callArguments', choice: 0, call: number, text })),
  { kind: 'callEnd', choice: 0, call: number },
];
const partsOf = (events: readonly StreamEvent[], showReasoning = true) =>
  blocksOf(encodeEvents([start, ...events, finish('stop'), end], { showReasoning })).map(
    (block) =>
      (block as { candidates?: { content: { parts: object[] } }[] }).candidates?.[0]?.content.parts[0],
  );

/** Stands on the first call of an answer without any reasoning. */
const unsigned = tokenAsBytes(noSignature);

test('text and a call, exactly', async (t) => {
  const events = [
    { kind: 'start' as const, usage: { ...usage, output: 0 } },
    text('a'),
    ...call('x', 0, '{"a"', ':1}'),
    finish('toolCalls'),
    { kind: 'usage' as const, usage },
    end,
  ];
  const first =
    '{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"index":0}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},"modelVersion":"g","responseId":"r"}';
  const last = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"x","name":"f","args":{"a":1}},"thoughtSignature":"${unsigned}"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},"modelVersion":"g","responseId":"r"}`;
  t.equal(encodeEvents(events), `data: ${first}\n\ndata: ${last}\n\n`);
  t.equal(encodeEvents(events, { framing: 'array' }), `[${first},\n${last}]`);
});

test('text is sent at once, and the last block has the reason and the usage', async (t) => {
  t.ok(encodeEvents([start, text('a')]).startsWith('data: {"candidates":'));
  t.equal(encodeEvents([start, text('')]), '');
  const blocks = blocksOf(encodeEvents([start, text('a'), { kind: 'usage', usage }, finish('length'), end]));
  t.match(blocks, [
    { candidates: [{ content: { parts: [{ text: 'a' }] } }] },
    {
      candidates: [{ content: { parts: [{ text: '' }] }, finishReason: 'MAX_TOKENS', index: 0 }],
      usageMetadata: { totalTokenCount: 3 },
    },
  ]);
  t.notOk('usageMetadata' in (blocks[0] ?? {}));
});

test('calls are sent whole, each in its block', async (t) => {
  t.same(partsOf([...call('x', 0, '{}'), ...call('', 1, '{"a":\n1}'), text('b'), ...call('z', 2, 'oops')]), [
    { functionCall: { id: 'x', name: 'f', args: {} }, thoughtSignature: unsigned },
    { functionCall: { id: 'call_r_1', name: 'f', args: { a: 1 } } },
    { text: 'b' },
    { functionCall: { id: 'z', name: 'f', args: { input: 'oops' } } },
  ]);
  t.equal(
    encodeEvents([start, ...call('x', 0, '{"a":\n1}'), end])
      .trim()
      .split('\n').length,
    1,
  );
});

test('a signature stands on the call that comes next, also behind a text, or on a part of its own', async (t) => {
  const reasoning: StreamEvent = { kind: 'reasoning', choice: 0, text: 'hm' };
  const events = [
    reasoning,
    signature('s'),
    ...call('x', 0, '{}'),
    signature('t'),
    text('a'),
    ...call('y', 1, '{}'),
    text('b'),
    signature('u'),
  ];
  const signed = [
    { functionCall: { id: 'x', name: 'f', args: {} }, thoughtSignature: tokenAsBytes('s') },
    { text: 'a' },
    { functionCall: { id: 'y', name: 'f', args: {} }, thoughtSignature: tokenAsBytes('t') },
    { text: 'b' },
    { text: '', thoughtSignature: tokenAsBytes('u') },
  ];
  t.same(partsOf(events), [{ text: 'hm', thought: true }, ...signed]);
  t.same(partsOf(events, false), signed, 'thoughts are told only on request');
  t.same(partsOf([signature('s'), reasoning, signature('t'), signature('u'), text('a')]), [
    { text: '', thoughtSignature: tokenAsBytes('s') },
    { text: 'hm', thought: true },
    { text: '', thoughtSignature: tokenAsBytes('t') },
    { text: 'a' },
    { text: '', thoughtSignature: tokenAsBytes('u') },
  ]);
});

test('several choices end together', async (t) => {
  const blocks = blocksOf(
    encodeEvents([
      start,
      text('a'),
      text('b', 1),
      finish('stop'),
      text('c', 1),
      finish('length', 1),
      { kind: 'usage', usage },
      end,
    ]),
  );
  t.match(blocks.slice(3), [
    { candidates: [{ index: 0, finishReason: 'STOP' }], usageMetadata: undefined },
    { candidates: [{ index: 1, finishReason: 'MAX_TOKENS' }], usageMetadata: { totalTokenCount: 3 } },
  ]);
});

test('refusals are text', async (t) => {
  t.same(
    partsOf([
      { kind: 'refusal', choice: 0, text: 'no' },
      { kind: 'citation', choice: 0, citation: { start: 0, end: 1, url: 'https://a', title: '' } },
    ]),
    [{ text: 'no' }, { text: '' }],
  );
});

test('log probabilities stand beside their text', async (t) => {
  const logprobs = [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }];
  t.match(blocksOf(encodeEvents([start, { kind: 'text', choice: 0, text: 'a', logprobs }])), [
    { candidates: [{ logprobsResult: { chosenCandidates: [{ token: 'a', logProbability: -1 }] } }] },
  ]);
});

test('an empty answer that was filtered is a blocked prompt', async (t) => {
  t.same(blocksOf(encodeEvents([start, finish('filtered'), { kind: 'usage', usage }, end])), [
    {
      promptFeedback: { blockReason: 'OTHER' },
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
      modelVersion: 'g',
      responseId: 'r',
    },
  ]);
  t.match(blocksOf(encodeEvents([start, text('a'), finish('filtered'), end]))[1], {
    candidates: [{ finishReason: 'SAFETY' }],
  });
});

test('an error is the last word, in either framing', async (t) => {
  const error = { kind: 'error' as const, error: new GatewayError('rate_limit_exceeded', 'slow') };
  const body = '{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}';
  t.equal(encodeEvents([start, error]), `data: ${body}\n\n`);
  t.equal(encodeEvents([start, error], { framing: 'array' }), `[${body}]`);
  const parsed: unknown = JSON.parse(encodeEvents([start, text('a'), error], { framing: 'array' }));
  t.match(parsed, [{ candidates: [] }, { error: { code: 429 } }]);
});

test('a call that is too long to be kept is an error, and the last word', async (t) => {
  const piece = 'x'.repeat(1024 * 1024);
  const pieces = Array.from({ length: 16 }, () => piece);
  const [begin] = call('x') as [StreamEvent];
  const more: StreamEvent = { kind: 'callArguments', choice: 0, call: 0, text: 'y' };
  for (const framing of ['sse', 'array'] as const) {
    const encoder = generateContentCodec.createEncoder({ ...context, framing });
    const written = [start, text('a'), begin, ...call('x', 0, ...pieces).slice(1, -1)].map((event) =>
      encoder.encode(event),
    );
    t.equal(written.slice(2).join(''), '', 'as long as it is kept nothing is sent');
    const body = '{"error":{"code":502,"message":"A tool call is too long.","status":"INTERNAL"}}';
    t.equal(encoder.encode(more), framing === 'sse' ? `data: ${body}\n\n` : `,\n${body}]`);
    for (const event of [more, text('b'), finish('stop'), end]) t.equal(encoder.encode(event), '');
    t.equal(encoder.encode({ kind: 'error', error: new GatewayError('upstream_error') }), '');
    t.equal(encoder.encodeRawText('b'), null);
  }
  const many = [
    ...call('x', 0, ...pieces.slice(1)),
    { ...begin, choice: 1 } as StreamEvent,
    ...pieces.slice(0, 2).map((text): StreamEvent => ({ kind: 'callArguments', choice: 1, call: 0, text })),
  ];
  t.match(encodeEvents([start, ...many]), 'too long', 'those of all choices count together');
  t.match(
    blocksOf(encodeEvents([start, ...call('x', 0, ...pieces), ...call('y', 1, '{}'), text('a')])).length,
    3,
    'one that was sent counts no more',
  );
});

test('what is written is read back', async (t) => {
  const events: StreamEvent[] = [
    { kind: 'start', usage: { ...usage, output: 0 } },
    { kind: 'reasoning', choice: 0, text: 'hm' },
    text('a'),
    text('é\n', 1),
    ...call('x', 0, '{"a":1}'),
    ...call('y', 1, '{}'),
    finish('toolCalls'),
    finish('length', 1),
    { kind: 'usage', usage },
    end,
  ];
  const ofCall = tagSignature({
    protocol: 'generateContent',
    model: 'g',
    value: unsigned,
    redacted: false,
    isOfCall: true,
  });
  t.same(
    decodeBlocks(...blocksOf(encodeEvents(events))).toSorted(byKind),
    [...events, signature(ofCall)].toSorted(byKind),
  );
});

function byKind(one: StreamEvent, other: StreamEvent): number {
  return one.kind.localeCompare(other.kind);
}

test('a streamed call that the token limit cut is left out, since clients run each call that they get', async (t) => {
  for (const pieces of [['{"pattern":"/tmp/*",', '"dry_run":tr'], ['{}']]) {
    const last = call('y', 1, ...pieces);
    const events = [start, text('a'), ...call('x', 0, '{"a":1}'), signature('s'), ...last];
    const parts = (reason: 'length' | 'toolCalls') =>
      blocksOf(encodeEvents([...events, finish(reason), end])).map((block) => {
        const [{ content = null, finishReason = null } = {}] = block.candidates as [
          { content?: JsonObject; finishReason?: string },
        ];
        return [content?.parts, finishReason];
      });
    t.match(parts('length'), [
      [[{ text: 'a' }], null],
      [[{ functionCall: { id: 'x' } }], null],
      [[{ text: '', thoughtSignature: String }], 'MAX_TOKENS'],
    ]);
    t.match(parts('toolCalls')[2], [[{ functionCall: { id: 'y' }, thoughtSignature: String }], 'STOP']);
  }
  const whole = blocksOf(encodeEvents([start, ...call('x', 0, '{"a":1}'), finish('length'), end]));
  t.match(whole, [{ candidates: [{ content: { parts: [{ functionCall: { id: 'x' } }] } }] }]);
});
