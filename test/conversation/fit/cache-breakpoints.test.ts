import { test } from 'tap';
import { fitCacheBreakpoints } from '../../../src/conversation/fit/cache-breakpoints.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type {
  CacheMark,
  ConversationRequest,
  Tool,
  ToolResultPart,
  Turn,
} from '../../../src/conversation/request.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { fittedBy } from './rules.js';

const tool = (name: string): Tool => ({ name, description: null, parameters: null, strict: null });
const user = (...texts: string[]): Turn => ({
  role: 'user',
  parts: texts.map((text) => ({ kind: 'text', text })),
});
const assistant = (text: string): Turn => ({ role: 'assistant', parts: [{ kind: 'text', text }] });
const result = (callId: string, cache?: CacheMark): ToolResultPart => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content: [],
  isError: false,
  at: '',
  ...(cache === undefined ? {} : { cache }),
});
const plainMark: CacheMark = { ttl: null };
const hour: CacheMark = { ttl: '1h' };

const request: ConversationRequest = {
  ...plain,
  tools: [tool('a'), tool('b')],
  system: ['one', 'two', ' '],
  turns: [user('first'), assistant('x'), user('second'), assistant('y'), user('third', 'last')],
};

function fit(given: Partial<ConversationRequest>, promptCaching = true, codec = messagesCodec) {
  const leftOut = new LeftOut();
  const fitted = fittedBy(
    fitCacheBreakpoints,
    { ...request, ...given },
    codec.rules,
    { ...target, promptCaching },
    leftOut,
  );
  if (fitted.restorer !== null) throw new Error('an answer has no marks');
  return { request: fitted.request, leftOut: leftOut.names, marks: marksOf(fitted.request) };
}

/** What is marked, in words, with its time. */
function marksOf({ tools, system, systemCache, turns }: ConversationRequest): string[] {
  const marks: string[] = [];
  const note = (what: string, cache: CacheMark | null | undefined) => {
    if (cache) marks.push(cache.ttl === null ? what : `${what} ${cache.ttl}`);
  };
  for (const each of tools) note(each.name, each.cache);
  system.forEach((text, index) => {
    note(text, systemCache?.[index]);
  });
  for (const turn of turns) {
    if (turn.role === 'system') note(turn.text, turn.cache);
    else {
      for (const part of turn.parts) {
        if (part.kind === 'reasoning') continue;
        note(part.kind === 'text' ? part.text : part.kind === 'toolResult' ? part.callId : '?', part.cache);
      }
    }
  }
  return marks;
}

test('tools, system prompt and the last two messages of the user are marked', async (t) => {
  t.strictSame(fit({}).marks, ['b', 'two', 'second', 'last']);
  t.strictSame(fit({ tools: [], system: [], turns: [user('only')] }).marks, ['only']);
  t.strictSame(fit({}).leftOut, []);
});

test('nothing is marked where the target says so, or its protocol has no marks', async (t) => {
  t.equal(fit({}, false).request.turns, request.turns);
  t.strictSame(fit({}, false).marks, []);
  t.strictSame(fit({}, true, chatCodec).marks, []);
});

test('no mark is put on what the upstream does not get as a block, or does not take one on', async (t) => {
  const turns: Turn[] = [
    user('first'),
    assistant('x'),
    { role: 'user', parts: [result('r1'), result('r2')] },
    user(' '),
    { role: 'assistant', parts: [{ kind: 'reasoning', text: 'hm', signature: null }] },
    user('asked', ''),
    { role: 'system', text: '' },
  ];
  t.strictSame(fit({ tools: [], system: [''], turns }).marks, ['r2', 'asked']);
});

test('the end of a message counts as it is written: results first, instructions where they stand', async (t) => {
  const turns: Turn[] = [
    user('said'),
    { role: 'user', parts: [result('r1')] },
    assistant('x'),
    user('asked'),
    { role: 'system', text: 'Be brief.' },
  ];
  t.strictSame(fit({ tools: [], system: [], turns }).marks, ['said', 'Be brief.']);
});

test('a choice among some tools marks the last of them', async (t) => {
  const toolChoice = { mode: 'allowed', names: ['a'], required: false } as const;
  t.strictSame(fit({ toolChoice }).marks, ['a', 'two', 'second', 'last']);
  t.strictSame(fit({ toolChoice: { ...toolChoice, names: ['gone'] } }).marks[0], 'b');
});

test("the client's marks keep their place and count", async (t) => {
  const own = {
    tools: [{ ...tool('a'), cache: plainMark }, tool('b')],
    systemCache: [{ ttl: '5m' }, null, null],
  } as const;
  t.strictSame(fit(own).marks, ['a', 'one 5m', 'two', 'last']);
  t.strictSame(fit(own, false).marks, ['a', 'one 5m']);
});

test('of too many marks of the client the last four stay', async (t) => {
  const turns: Turn[] = [
    { role: 'user', parts: ['1', '2', '3', '4'].map((id) => result(id, plainMark)) },
    { role: 'system', text: 'and', cache: plainMark },
  ];
  for (const promptCaching of [true, false]) {
    const { marks, leftOut } = fit({ turns }, promptCaching);
    t.strictSame(marks, ['2', '3', '4', 'and']);
    t.strictSame(leftOut, ['cache_control']);
  }
});

test('before a mark for an hour every added one is for an hour', async (t) => {
  const turns: Turn[] = [user('first'), assistant('x'), { role: 'user', parts: [result('r', hour)] }];
  t.strictSame(fit({ turns }).marks, ['b 1h', 'two 1h', 'first 1h', 'r 1h']);
  const systemCache = [hour, null, null];
  t.strictSame(fit({ systemCache }).marks, ['b 1h', 'one 1h', 'two', 'last']);
});

test("marks of the client's are told as lost where the protocol has none", async (t) => {
  t.strictSame(fit({ systemCache: [hour, null, null] }, true, chatCodec).leftOut, ['cache_control']);
  t.strictSame(fit({}, true, chatCodec).leftOut, []);
});
