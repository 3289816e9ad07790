import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { fitSameTools, fitToolNames } from '../../../src/conversation/fit/tool-names.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest, Tool } from '../../../src/conversation/request.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const rules = { ...anything, toolNames: { longest: 64, legal: /^[A-Za-z0-9_-]+$/ } };
const long = `mcp__server__${'x'.repeat(61)}`;
const tool = (name: string): Tool => ({ name, description: null, parameters: null, strict: null });
const call = { kind: 'toolCall', id: '1', name: long, input: '{}', custom: false, at: '' } as const;
const result = { kind: 'toolResult', callId: '1', name: long, content: [], isError: false, at: '' } as const;
const request: ConversationRequest = {
  ...plain,
  tools: [tool(long), tool('read'), tool('9.b:c')],
  turns: [
    { role: 'assistant', parts: [call] },
    { role: 'user', parts: [result] },
  ],
  toolChoice: { mode: 'allowed', names: [long, 'read'], required: true },
};

test('a name that is refused is another wherever it stands, and always the same', async (t) => {
  const { tools, turns, toolChoice } = fittedBy(fitToolNames, request, rules).request;
  const [first, second, third] = tools.map(({ name }) => name);
  t.match(first, /^mcp__server__x{42}_[A-Za-z0-9_-]{8}$/);
  t.equal(first?.length, 64);
  t.equal(second, 'read');
  t.match(third, /^__b_c_[A-Za-z0-9_-]{8}$/);
  t.match(turns, [{ parts: [{ name: first }] }, { parts: [{ name: first }] }]);
  t.match(toolChoice, { names: [first, 'read'] });
  const alone = { ...request, tools: [tool('other')], toolChoice: { mode: 'named', name: long } as const };
  const later = fittedBy(fitToolNames, alone, rules).request;
  t.match(later.turns, [{ parts: [{ name: first }] }, {}], 'declared or not');
  t.match(later.toolChoice, { name: first });
  t.not(
    fittedBy(fitToolNames, { ...request, tools: [tool(`${long}y`)] }, rules).request.tools[0]?.name,
    first,
  );
});

test('calls come back under the names that the client gave', async (t) => {
  const { request: fitted, restorer } = fittedBy(fitToolNames, request, rules);
  const name = fitted.tools[0]?.name ?? '';
  const out: StreamEvent[] = [];
  const start = (called: string) =>
    ({ kind: 'callStart', choice: 0, call: 0, id: '1', name: called, custom: false }) as const;
  restorer?.event(start(name), out);
  restorer?.event(start('read'), out);
  t.strictSame(out, [start(long), start('read')]);
  const parts = [
    { ...call, name },
    { ...call, name: 'unknown' },
  ];
  const answer = { choices: [{ parts, finish: 'toolCalls' as const, stopSequence: null }], usage: null };
  t.match(restorer?.answer(answer).choices[0]?.parts, [{ name: long }, { name: 'unknown' }]);
});

test('names that are taken stay', async (t) => {
  const given = { ...request, tools: [tool('a'.repeat(64))], turns: [], toolChoice: null };
  t.strictSame(fittedBy(fitToolNames, given, rules), { request: given, restorer: null });
});

test('of tools that are called the same the first is declared', async (t) => {
  const first = { ...tool('read'), description: 'first' };
  const tools = [first, tool('write'), tool('read')];
  const lost = new LeftOut();
  const fitted = fittedBy(fitSameTools, { ...request, tools }, rules, target, lost);
  t.strictSame(fitted.request.tools, [first, tool('write')]);
  t.strictSame(lost.names, ['tools']);
  const none = new LeftOut();
  const context = { rules, options: target, leftOut: none };
  t.equal(fitSameTools({ ...request, tools: [first, tool('write')] }, context), null);
  t.strictSame(none.names, []);
});
