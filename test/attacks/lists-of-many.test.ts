import { test } from 'tap';
import { fitStopSequences } from '../../src/conversation/fit/stop-sequences.js';
import { fitToolRoots } from '../../src/conversation/fit/tool-roots.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import type { ConversationRequest, Turn } from '../../src/conversation/request.js';
import { tagSignature } from '../../src/conversation/signature.js';
import { chatCodec } from '../../src/protocols/chat/index.js';
import { generateContentCodec } from '../../src/protocols/generate-content/index.js';
import { messagesCodec } from '../../src/protocols/messages/index.js';
import { responsesCodec } from '../../src/protocols/responses/index.js';
import type { JsonObject } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';
import { anything, fittedBy } from '../conversation/fit/rules.js';
import { plain, target } from '../protocols/messages/samples.js';

/*
 * A list that is looked through for each entry of another one, or of itself, holds a worker for minutes: these tests
 * would not end.
 */

const many = 400_000;
const lastTool = `"name":"f${many - 1}"`;
const numbered = (start: string): string[] =>
  Array.from({ length: many }, (_, number) => `${start}${number}`);
const sealer = createSealer('a secret of the tests');

function lastParts(turns: readonly Turn[]): readonly unknown[] {
  const last = turns.at(-1);
  return last === undefined || last.role === 'system' ? [] : last.parts;
}

test('stop sequences of which one is not taken', async (t) => {
  const stop = [...numbered('s'), ' '];
  const rules = { ...anything, stop: { most: Number.POSITIVE_INFINITY, blank: false } };
  const { request } = fittedBy(fitStopSequences, { ...plain, stop }, rules, target, new LeftOut());
  t.equal(request.stop.length, many);
});

test('a choice among tools', async (t) => {
  const tools = numbered('f').map((name) => ({ name, description: null, parameters: null, strict: null }));
  const asked: ConversationRequest = {
    ...plain,
    tools,
    toolChoice: { mode: 'allowed', names: numbered('f').reverse(), required: true },
  };
  for (const codec of [chatCodec, messagesCodec, responsesCodec])
    t.ok(codec.encodeRequest(asked, target, new LeftOut()).includes(lastTool), codec.rules.protocol);
  const others = { ...asked, toolChoice: { mode: 'allowed', names: numbered('g'), required: true } } as const;
  const caching = { ...target, promptCaching: true };
  t.ok(messagesCodec.encodeRequest(others, caching, new LeftOut()).includes(lastTool));
});

test('calls of functions and their results in another order', async (t) => {
  const calls = numbered('f').map((name) => ({
    role: 'assistant',
    function_call: { name, arguments: '{}' },
  }));
  const results = numbered('f').map((name) => ({ role: 'function', name, content: 'r' }));
  const messages = [{ role: 'user', content: 'hi' }, ...calls, ...results.reverse()];
  const { turns } = chatCodec.decodeRequest({ messages }, false, sealer);
  t.match(lastParts(turns)[0], { kind: 'toolResult', callId: `function_call_${many}` });
});

test('parts that are signed', async (t) => {
  const tokenOf = (value: string) =>
    tagSignature({ protocol: 'messages', model: 'm', value, redacted: false });
  const parts = numbered('t').map((text) => ({ text, thoughtSignature: tokenOf(text) }));
  const contents = [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'model', parts },
  ];
  const { turns } = generateContentCodec.decodeRequest({ contents }, false, sealer);
  t.equal(lastParts(turns).length, 2 * many);
});

test('what stands in the place of a schema is written once, however often it is referred to', async (t) => {
  let times = 0;
  const list = Object.assign([], {
    toJSON: () => {
      times++;
      return [];
    },
  });
  const parameters: JsonObject = {
    anyOf: Array.from({ length: 100 }, () => ({ $ref: '#/$defs/d' })),
    $defs: { d: { properties: { a: list } } },
  };
  const tools = [{ name: 'f', description: null, parameters, strict: null }];
  const { request } = fittedBy(
    fitToolRoots,
    { ...plain, tools },
    { ...anything, toolRoot: ['anyOf'] },
    target,
    new LeftOut(),
  );
  t.equal(times, 1);
  t.same(request.tools[0]?.parameters?.properties, { a: list });
});
