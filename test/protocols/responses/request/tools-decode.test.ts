import { test } from 'tap';
import { refusalOf } from '../../../support/refusal.js';
import { decode, encode } from '../conversation.js';

const user = { role: 'user', content: 'hi' };
const own = { type: 'function', name: 'f', parameters: {} };

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

test('a choice of a tool of the upstream’s is left out, whatever the target says', async (t) => {
  for (const type of ['web_search', 'mcp', 'local_shell', 'tool_search', { toString: 1, valueOf: 1 }]) {
    const request = decode({ tools: [own], tool_choice: { type } });
    t.match(request, { toolChoice: null, hostedTools: [], leftOut: ['tool_choice'] });
    t.notOk('tool_choice' in encode(request));
  }
});

test('of several that are allowed, those of the upstream’s are left out', async (t) => {
  const allowed = (...tools: object[]) =>
    decode({ tools: [own], tool_choice: { type: 'allowed_tools', mode: 'required', tools } });
  const mixed = allowed({ type: 'mcp', server_label: 's' }, { type: 'function', name: 'f' });
  t.same(mixed.leftOut, ['tool_choice']);
  t.same(mixed.toolChoice, { mode: 'allowed', names: ['f'], required: true });
  t.same(allowed({ type: 'mcp' }).toolChoice, { mode: 'none' }, 'nothing is left to be called');
});

test('what a tool of the upstream’s left in the conversation is left out where the tool would be refused', async (t) => {
  const input = [
    user,
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
    { role: 'assistant', content: 'So.' },
    { type: 'mcp_list_tools', tools: [] },
    user,
  ];
  const { hostedTools, turns, leftOut } = decode({ input });
  t.strictSame(hostedTools, []);
  t.strictSame(leftOut, ['web_search_call', 'mcp_list_tools']);
  t.strictSame(
    turns.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  t.equal((encode(decode({ input })).input as unknown[]).length, 3);
  t.match(
    refusalOf(() => encode(decode({ input, tools: [{ type: 'mcp' }] }))),
    { kind: 'unsupported_parameter', param: 'tools[0]', status: 400 },
  );
});

const search = {
  type: 'tool_search',
  execution: 'client',
  description: 'Finds tools.',
  parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
};

test('a shell and a search that the client runs are functions', async (t) => {
  const { tools, hostedTools, clientTools } = decode({
    tools: [
      search,
      { type: 'local_shell' },
      { type: 'tool_search' },
      { type: 'tool_search', execution: 'server' },
    ],
  });
  t.match(tools, [
    { name: 'tool_search', description: 'Finds tools.', parameters: search.parameters, strict: null },
    {
      name: 'local_shell',
      parameters: {
        properties: { command: { type: 'array', items: { type: 'string' } } },
        required: ['command'],
      },
    },
  ]);
  t.same(
    hostedTools.map(({ at }) => at),
    ['tools[2]', 'tools[3]'],
  );
  t.same(clientTools?.get('local_shell'), { namespace: null, name: 'local_shell', type: 'local_shell' });
});

test('a function that has the name of such a tool keeps it', async (t) => {
  const { tools, toolChoice, turns } = decode({
    tools: [{ type: 'local_shell' }, { type: 'function', name: 'local_shell' }],
    tool_choice: { type: 'local_shell' },
    input: [{ type: 'local_shell_call', call_id: 'c', action: { type: 'exec', command: ['ls'] } }],
  });
  const [shell, other] = tools.map(({ name }) => name);
  t.match(shell, /^local_shell_[\w-]{8}$/);
  t.equal(other, 'local_shell');
  t.same(toolChoice, { mode: 'named', name: shell });
  t.match(turns, [{ parts: [{ kind: 'toolCall', name: shell }] }]);
});

test('their calls and outputs are those of functions', async (t) => {
  const exec = {
    type: 'exec',
    command: ['ls', '-l'],
    working_directory: '/a',
    timeout_ms: 5,
    env: { A: 'b' },
    user: null,
  };
  const { turns, leftOut } = decode({
    input: [
      user,
      { type: 'tool_search_call', call_id: 's1', execution: 'client', arguments: { query: 'x' } },
      { type: 'tool_search_output', call_id: 's1', execution: 'client', tools: [own] },
      { type: 'local_shell_call', id: 'lsh_1', call_id: 'c1', action: exec },
      { type: 'local_shell_call_output', id: 'lsh_1', output: 'done' },
      { type: 'local_shell_call', id: 'lsh_2', action: { type: 'exec', command: ['pwd'] } },
      { type: 'function_call_output', call_id: 'lsh_2', output: '/a' },
    ],
  });
  const input = '{"command":["ls","-l"],"workdir":"/a","timeout_ms":5,"env":{"A":"b"}}';
  t.match(turns.slice(1), [
    { parts: [{ kind: 'toolCall', id: 's1', name: 'tool_search', input: '{"query":"x"}', custom: false }] },
    {
      parts: [{ callId: 's1', name: 'tool_search', content: [{ text: 'These tools can be called now: f' }] }],
    },
    { parts: [{ kind: 'toolCall', id: 'c1', name: 'local_shell', input }] },
    { parts: [{ callId: 'c1', name: 'local_shell', content: [{ text: 'done' }] }] },
    { parts: [{ id: 'lsh_2', input: '{"command":["pwd"]}' }] },
    { parts: [{ callId: 'lsh_2', name: 'local_shell' }] },
  ]);
  t.same(leftOut, []);
});

test('tools that an input brings are declared, each once', async (t) => {
  const inSpace = (name: string, ...names: string[]) => ({
    type: 'namespace',
    name,
    tools: names.map((each) => ({ type: 'custom', name: each })),
  });
  const brought = { type: 'additional_tools', role: 'developer', tools: [own, inSpace('functions', 'exec')] };
  const { tools, hostedTools, clientTools, turns, system } = decode({
    tools: [{ ...own, description: 'the first one' }],
    input: [
      brought,
      { role: 'developer', content: 'd' },
      user,
      brought,
      { ...brought, tools: [inSpace('functions', 'exec', 'wait'), { type: 'mcp' }] },
      { type: 'tool_search_output', call_id: 's', tools: [inSpace('mcp__x', 'exec'), { ...own, name: 'g' }] },
      { type: 'custom_tool_call', call_id: 'c', name: 'exec', namespace: 'functions', input: 'ls' },
    ],
  });
  t.same(
    tools.map(({ name }) => name),
    ['f', 'functions__exec', 'wait', 'mcp__x__exec', 'g'],
  );
  t.equal(tools[0]?.description, 'the first one');
  t.same(hostedTools, [{ type: 'mcp', at: 'input[4].tools[1]' }]);
  t.match(clientTools?.get('functions__exec'), { namespace: 'functions', name: 'exec' });
  t.same(system, ['d'], 'they are no turn');
  t.match(turns.at(-1), { role: 'assistant', parts: [{ name: 'functions__exec', custom: true }] });
});
