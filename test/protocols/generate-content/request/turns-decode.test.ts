import { test } from 'tap';
import { tagSignature } from '../../../../src/conversation/signature.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { decode, foreignToken, token, user } from '../samples.js';

const partsOf = (role: string, ...parts: JsonObject[]) => {
  const [turn] = decode({ contents: [{ role, parts }] }).turns;
  return turn !== undefined && 'parts' in turn ? turn.parts : [];
};
const turnsOf = (...contents: JsonObject[]) => decode({ contents }).turns;
const model = (...parts: JsonObject[]) => ({ role: 'model', parts });
const results = (...responses: JsonObject[]) => ({
  role: 'user',
  parts: responses.map((functionResponse) => ({ functionResponse })),
});
const call = (functionCall: JsonObject, more: JsonObject = {}) => ({ functionCall, ...more });
const idsOf = (turns: ReturnType<typeof turnsOf>) => {
  const ids: string[] = [];
  for (const turn of turns) {
    if (turn.role === 'system') continue;
    for (const part of turn.parts) {
      if (part.kind === 'toolCall') ids.push(part.id);
      else if (part.kind === 'toolResult') ids.push(part.callId);
    }
  }
  return ids;
};

test('roles, and contents that say nothing', async (t) => {
  t.same(
    turnsOf(
      { parts: [{ text: 'a' }] },
      { role: 'user', parts: { text: 'b' } },
      model({ text: '' }),
      { role: 'model', parts: [] },
      model({ text: 'c' }),
    ),
    [
      { role: 'user', parts: [{ kind: 'text', text: 'a' }] },
      { role: 'user', parts: [{ kind: 'text', text: 'b' }] },
      { role: 'assistant', parts: [{ kind: 'text', text: 'c' }] },
    ],
  );
});

test('media by their types', async (t) => {
  const inline = (mimeType: string) => ({ inlineData: { mimeType, data: 'AA==', displayName: 'n' } });
  t.match(
    partsOf(
      'user',
      inline('image/JPG'),
      inline('audio/wav'),
      inline('video/mp4'),
      inline('application/pdf'),
      inline('text/plain'),
    ),
    [
      {
        kind: 'image',
        source: { kind: 'data', mediaType: 'image/jpeg', data: 'AA==' },
        name: 'n',
        at: 'contents[0].parts[0].inlineData',
      },
      { kind: 'audio' },
      { kind: 'video' },
      { kind: 'document' },
      { kind: 'document', source: { mediaType: 'text/plain' } },
    ],
  );
  const file = (fileUri: string, mimeType?: string) => ({ fileData: { fileUri, mimeType } });
  t.match(
    partsOf(
      'user',
      file('https://a/b', 'image/png'),
      file('https://a/b.PNG?x=1'),
      file('https://www.youtube.com/watch?v=1'),
      file('https://a/b'),
    ),
    [
      { kind: 'image', source: { kind: 'url', url: 'https://a/b', mediaType: 'image/png' } },
      { kind: 'image', source: { mediaType: null } },
      { kind: 'video' },
      { kind: 'document' },
    ],
  );
});

test('a type under either name of its member is read', async (t) => {
  t.match(
    partsOf(
      'user',
      { inlineData: { mimeType: 'audio/wav', data: 'AA==' } },
      { inline_data: { mime_type: 'audio/wav', data: 'AA==' } },
      { file_data: { file_uri: 'https://a/b', mime_type: 'image/JPG' } },
    ),
    [
      { kind: 'audio', source: { mediaType: 'audio/wav' } },
      { kind: 'audio', source: { mediaType: 'audio/wav' } },
      { kind: 'image', source: { mediaType: 'image/jpeg' } },
    ],
  );
});

test('calls and results keep their ids, or get them by order and name', async (t) => {
  t.same(
    idsOf(
      turnsOf(
        user('a'),
        model(
          call({ id: 'x', name: 'f', args: {} }),
          call({ name: 'f' }),
          call({ name: 'g.h' }),
          call({ name: 'f' }),
        ),
        results(
          { name: 'g.h', response: {} },
          { name: 'f', response: {} },
          { id: 'x', name: 'f', response: {} },
          { name: 'f', response: {} },
        ),
      ),
    ),
    ['x', 'call_1_f', 'call_2_g_h', 'call_3_f', 'call_2_g_h', 'call_1_f', 'x', 'call_3_f'],
  );
});

test('results without ids answer the calls of the latest turn', async (t) => {
  const both = turnsOf(
    model(call({ name: 'f' }), call({ name: 'f' })),
    results({ name: 'f', response: {} }),
    model(call({ name: 'f' })),
    results({ name: 'f', response: {} }),
  );
  t.same(idsOf(both), ['call_0_f', 'call_1_f', 'call_0_f', 'call_2_f', 'call_2_f']);
});

test('ids that are made are legal everywhere', async (t) => {
  const [id] = idsOf(turnsOf(model(call({ name: `é ${'x'.repeat(200)}` }))));
  t.match(id, /^[A-Za-z0-9_-]{1,64}$/);
});

test('what a function gave, as text', async (t) => {
  const resultOf = (response: JsonObject, more: JsonObject = {}) => {
    const [, turn] = turnsOf(
      model(call({ name: 'f', id: 'x' })),
      results({ id: 'x', name: 'f', response, ...more }),
    );
    return turn !== undefined && 'parts' in turn ? turn.parts[0] : undefined;
  };
  const text = (value: string, isError = false) => ({ isError, content: [{ kind: 'text', text: value }] });
  t.match(resultOf({ result: '42' }), { kind: 'toolResult', callId: 'x', name: 'f', ...text('42') });
  t.match(resultOf({ output: 'a' }), text('a'));
  t.match(resultOf({ result: '{not json' }), text('{not json'));
  t.match(resultOf({ result: '{"a":1}' }), text('{"result":"{\\"a\\":1}"}'));
  t.match(resultOf({ result: 42 }), text('{"result":42}'));
  t.match(resultOf({ a: 'b', c: 1 }), text('{"a":"b","c":1}'));
  t.match(resultOf({ error: 'no' }), text('no', true));
  t.match(resultOf({ error: { code: 1 } }), text('{"code":1}', true));
  t.match(resultOf({ error: null, output: 'a' }), text('{"error":null,"output":"a"}'));
  t.match(resultOf({ error: 'no', output: 'a' }), text('{"error":"no","output":"a"}', true));
  t.match(resultOf({}), text('{}'));
  t.match(turnsOf(model(call({ name: 'f' })), results({ name: 'f' }))[1], {
    parts: [{ content: [], isError: false, at: 'contents[1].parts[0].functionResponse' }],
  });
  t.match(resultOf({ result: 'see' }, { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] }), {
    content: [{ kind: 'text', text: 'see' }, { kind: 'image' }],
  });
});

test('results come before what was said beside them', async (t) => {
  const [, turn] = turnsOf(model(call({ name: 'f', id: 'x' })), {
    role: 'user',
    parts: [{ text: 'a' }, { functionResponse: { id: 'x', name: 'f', response: {} } }],
  });
  t.match(turn, { role: 'user', parts: [{ kind: 'toolResult' }, { kind: 'text' }] });
});

test('thoughts are joined, and have the signature of what follows', async (t) => {
  const sig = token('s');
  const thought = { text: 'hm', thought: true };
  const reasoning = (text: string, signature: string | null) => ({ kind: 'reasoning', text, signature });
  t.same(partsOf('model', thought, { text: '!', thought: true }, { text: 'a' }), [
    reasoning('hm!', null),
    { kind: 'text', text: 'a' },
  ]);
  t.match(partsOf('model', thought, call({ name: 'f' }, { thoughtSignature: sig }), call({ name: 'g' })), [
    reasoning('hm', sig),
    { kind: 'toolCall', name: 'f' },
    { kind: 'toolCall', name: 'g' },
  ]);
  t.match(partsOf('model', call({ name: 'f' }, { thought_signature: foreignToken })), [
    reasoning('', foreignToken),
    { kind: 'toolCall', name: 'f' },
  ]);
  t.same(partsOf('model', { text: 'a' }, { text: '', thoughtSignature: 'raw' }), [
    { kind: 'text', text: 'a' },
    reasoning('', 'gw1.s.generateContent..raw'),
  ]);
  t.same(partsOf('model', { thoughtSignature: sig }), [reasoning('', sig)]);
  t.same(partsOf('model', { ...thought, thoughtSignature: sig }, { text: 'a', thoughtSignature: sig }), [
    reasoning('hm', sig),
    reasoning('', sig),
    { kind: 'text', text: 'a' },
  ]);
});

test('what another vendor signed stands before the texts that its signature came behind', async (t) => {
  const reasoning = (signature: string, text = '') => ({ kind: 'reasoning', text, signature });
  const text = (value: string) => ({ kind: 'text', text: value });
  const [first, second] = ['a', 'b'].map((value) =>
    tagSignature({ protocol: 'messages', model: 'm', value, redacted: false }),
  ) as [string, string];
  const signedCall = call({ name: 'f' }, { thoughtSignature: second });
  t.match(partsOf('model', { text: 'x' }, signedCall, { text: 'y' }), [
    reasoning(second),
    text('x'),
    { kind: 'toolCall' },
    text('y'),
  ]);
  t.match(partsOf('model', { text: 'x' }, { text: '', thoughtSignature: first }, signedCall), [
    reasoning(first),
    text('x'),
    reasoning(second),
    { kind: 'toolCall' },
  ]);
  t.match(partsOf('model', { text: 'x', thoughtSignature: first }, signedCall), [
    reasoning(first),
    text('x'),
    reasoning(second),
    { kind: 'toolCall' },
  ]);
  t.match(partsOf('model', { text: 'hm', thought: true }, { text: 'x' }, signedCall), [
    reasoning(second, 'hm'),
    text('x'),
    { kind: 'toolCall' },
  ]);
  const [turn] = turnsOf(model({ text: 'x' }), model({ text: 'y' }), model(signedCall));
  t.match(turn, { role: 'assistant', parts: [reasoning(second), text('xy'), { kind: 'toolCall' }] });
});
