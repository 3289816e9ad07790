import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { type Shape, shapeOf, unreadMembers } from '../../src/protocols/unsupported.js';
import type { JsonObject } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';

const sealer = createSealer('a secret of the tests');

test('members that are not read are named with the objects around them, or from the last list on', async (t) => {
  const shape = shapeOf('a', {
    config: shapeOf('b'),
    list: shapeOf('text', { inner: shapeOf('c', { deep: shapeOf('d') }) }),
    parts: ({ type }) => (type === 'x' ? shapeOf('type') : true),
  });
  const body = {
    a: { anything: 1 },
    z: 1,
    config: { b: 1, y: 1 },
    list: [{ text: 'x' }, { text: 'y', w: 1, inner: { c: 1, deep: { v: 1 } } }],
    parts: [
      { type: 'x', u: 1 },
      { type: 'other', u2: 1 },
    ],
    constructor: 1,
  };
  t.strictSame(unreadMembers(body, shape), ['z', 'config.y', 'w', 'inner.deep.v', 'u', 'constructor']);
});

test('what says nothing is no loss', async (t) => {
  const nothing = { a: null, b: false, c: '', d: [], e: {}, f: 'disabled' };
  t.strictSame(unreadMembers(nothing, shapeOf(), { f: 'disabled' }), []);
  t.strictSame(unreadMembers({ f: 'auto', g: 0 }, shapeOf(), { f: 'disabled' }), ['f', 'g']);
});

test('a body without end is looked through so far', async (t) => {
  let body: JsonObject = { z: 1 };
  const shape = new Map<string, Shape>();
  shape.set('a', shape);
  for (let i = 0; i < 10_000; i++) body = { a: body };
  t.strictSame(unreadMembers(body, shape), []);
});

const leftOut = (protocol: TextProtocolName, body: JsonObject) =>
  textEndpoints[protocol].translation.codec.decodeRequest(body, false, sealer).leftOut;

test('each decoder names what it does not read', async (t) => {
  const mark = { cache_control: { type: 'ephemeral' } };
  t.strictSame(
    leftOut('messages', {
      max_tokens: 1,
      system: [{ type: 'text', text: 'a', ...mark }],
      tools: [
        { ...mark, name: 'f', input_schema: {}, defer_loading: true },
        { type: 'web_search_20250305', max_uses: 1 },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'text', text: 'x', ...mark }] },
            { type: 'document', source: { type: 'text', data: 'x' }, citations: { enabled: true } },
          ],
        },
      ],
      context_management: { edits: [] },
      service_tier: 'auto',
    }),
    ['cache_control', 'defer_loading', 'citations', 'context_management', 'service_tier'],
  );
  t.strictSame(
    leftOut('chat', {
      messages: [
        { role: 'user', content: 'hi', name: 'n' },
        {
          role: 'assistant',
          content: 'x',
          phase: 'final',
          reasoning_content: 'hm',
          refusal: null,
          annotations: [],
        },
      ],
      top_k: 3,
      store: true,
      prediction: { type: 'content', content: 'x' },
      stream_options: { include_usage: true, other: 1 },
    }),
    ['name', 'phase', 'top_k', 'store', 'prediction', 'stream_options.other'],
  );
  t.strictSame(
    leftOut('responses', {
      input: [{ type: 'message', role: 'assistant', id: 'm', content: 'x', phase: 'commentary' }],
      reasoning: { effort: 'low', context: 'x' },
      text: { verbosity: 'low', other: 1 },
      tools: [
        { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f', defer_loading: true }] },
      ],
      truncation: 'auto',
      include: ['reasoning.encrypted_content', 'file_search_call.results'],
      max_tool_calls: 3,
    }),
    ['phase', 'reasoning.context', 'text.other', 'defer_loading', 'truncation', 'max_tool_calls', 'include'],
  );
  t.strictSame(
    leftOut('generateContent', {
      contents: [{ parts: [{ text: 'x', video_metadata: { fps: 1 } }] }],
      generation_config: { top_k: 1, mediaResolution: 'LOW' },
      tools: [{ functionDeclarations: [{ name: 'f', behavior: 'BLOCKING' }] }, { googleSearch: { x: 1 } }],
      safetySettings: [{ category: 'x' }],
    }),
    ['video_metadata', 'generation_config.mediaResolution', 'behavior', 'googleSearch.x', 'safetySettings'],
  );
});

test('a plain body of each protocol loses nothing', async (t) => {
  t.strictSame(leftOut('messages', { max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }), []);
  t.strictSame(leftOut('chat', { messages: [{ role: 'user', content: 'hi' }], store: false }), []);
  t.strictSame(leftOut('responses', { input: 'hi', store: true, truncation: 'disabled' }), []);
  t.strictSame(leftOut('generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }), []);
});
