import { test } from 'tap';
import { decode, encode, errorOf, target } from '../conversation.js';

const user = { role: 'user', content: 'hi' };
const own = { type: 'function', name: 'f', parameters: {} };
const drop = { ...target, hostedTools: 'drop' } as const;

test('every form of a tool choice', async (t) => {
  const choice = (tool_choice: unknown) => decode({ tool_choice }).toolChoice;
  for (const mode of ['none', 'auto', 'required']) t.same(choice(mode), { mode });
  t.same(choice({ type: 'function', name: 'f' }), { mode: 'named', name: 'f' });
  t.same(choice({ type: 'custom', name: 'f' }), { mode: 'named', name: 'f' });
  const tools = [
    { type: 'function', name: 'f' },
    { type: 'custom', name: 'g' },
  ];
  t.same(choice({ type: 'allowed_tools', mode: 'required', tools }), {
    mode: 'allowed',
    names: ['f', 'g'],
    required: true,
  });
  t.match(choice({ type: 'allowed_tools', mode: 'auto', tools }), { required: false });
});

test('a choice of a tool of the upstream’s is noted like the tool', async (t) => {
  const request = decode({ tools: [own], tool_choice: { type: 'web_search' } });
  t.match(request, { toolChoice: null, hostedTools: [{ type: 'web_search', at: 'tool_choice' }] });
  t.match(
    errorOf(() => encode(request)),
    { kind: 'unsupported_parameter', param: 'tool_choice', status: 400 },
  );
  t.notOk('tool_choice' in encode(request, drop));
  const odd = decode({ tool_choice: { type: { toString: 1, valueOf: 1 } } });
  t.same(odd.hostedTools, [{ type: 'unknown', at: 'tool_choice' }]);
});

test('of several that are allowed, those of the upstream’s are noted', async (t) => {
  const allowed = (...tools: object[]) =>
    decode({ tools: [own], tool_choice: { type: 'allowed_tools', mode: 'required', tools } });
  const mixed = allowed({ type: 'mcp', server_label: 's' }, { type: 'function', name: 'f' });
  t.same(mixed.hostedTools, [{ type: 'mcp', at: 'tool_choice.tools[0]' }]);
  t.same(mixed.toolChoice, { mode: 'allowed', names: ['f'], required: true });
  t.same(allowed({ type: 'mcp' }).toolChoice, { mode: 'none' }, 'nothing is left to be called');
});

test('what a tool of the upstream’s left in the conversation is noted and in no turn', async (t) => {
  const request = decode({
    input: [
      user,
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      { role: 'assistant', content: 'So.' },
      { type: 'mcp_list_tools', tools: [] },
      user,
    ],
    tools: [{ type: 'web_search' }],
  });
  t.same(request.hostedTools, [
    { type: 'web_search', at: 'tools[0]' },
    { type: 'web_search_call', at: 'input[1]' },
    { type: 'mcp_list_tools', at: 'input[3]' },
  ]);
  t.same(
    request.turns.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  t.equal((encode(request, drop).input as unknown[]).length, 3);
  t.match(
    errorOf(() => encode({ ...request, hostedTools: request.hostedTools.slice(1) })),
    { kind: 'unsupported_parameter', param: 'input[1]' },
  );
});
