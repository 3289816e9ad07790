import { test } from 'tap';
import {
  clientCallMembers,
  clientCallOf,
  clientOutputOf,
  clientToolType,
} from '../../../src/protocols/responses/client-tools.js';

const action = (input: string) =>
  (JSON.parse(`{${clientCallMembers('local_shell', input).slice(1)}}`) as { action: unknown }).action;
const search = (input: string) => JSON.parse(`{${clientCallMembers('tool_search', input).slice(1)}}`);

test('a command that is no list of words never runs as one', async (t) => {
  const command = (value: unknown) => action(JSON.stringify({ command: value }));
  t.match(command(['ls', '-l']), { type: 'exec', command: ['ls', '-l'], env: {} });
  t.match(command('ls | wc'), { command: ['bash', '-lc', 'ls | wc'] });
  for (const odd of ['', null, 5, ['ls', 5], [['ls']], {}]) t.match(command(odd), { command: [] });
  for (const text of ['', '{"command":["rm","-rf","/', '[1]', '"ls"']) t.match(action(text), { command: [] });
});

test('of the other arguments only what the item has a place for comes through', async (t) => {
  t.strictSame(
    action('{"command":["a"],"workdir":5,"timeout_ms":"1","env":{"A":"b","C":1},"user":null,"x":1}'),
    { type: 'exec', command: ['a'], env: { A: 'b' } },
  );
  t.strictSame(action('{"command":["a"],"working_directory":"/w","timeout_ms":7,"user":"u"}'), {
    type: 'exec',
    command: ['a'],
    env: {},
    working_directory: '/w',
    timeout_ms: 7,
    user: 'u',
  });
});

test('the arguments of a search are an object whatever the model wrote', async (t) => {
  t.strictSame(search('{"query":"x","limit":3}'), {
    execution: 'client',
    arguments: { query: 'x', limit: 3 },
  });
  t.strictSame(search(''), { execution: 'client', arguments: {} });
  t.strictSame(search('[1'), { execution: 'client', arguments: { input: '[1' } });
});

test('a call without an id, or of another type, is none', async (t) => {
  t.equal(clientCallOf({ type: 'tool_search_call', id: 'tsc_1', call_id: null, arguments: {} }), null);
  t.equal(clientCallOf({ type: 'local_shell_call', action: {} }), null);
  t.equal(clientCallOf({ type: 'computer_call', call_id: 'c' }), null);
  t.match(clientCallOf({ type: 'local_shell_call', call_id: 'c', action: 5 }), { input: '{"command":[]}' });
  t.match(clientCallOf({ type: 'tool_search_call', call_id: 'c', arguments: '{"a":1}' }), {
    input: '{"a":1}',
  });
});

const members = (type: 'shell' | 'apply_patch', input: unknown) =>
  JSON.parse(`{${clientCallMembers(type, JSON.stringify(input)).slice(1)}}`);

test("a shell is the client's own unless it runs in a container", async (t) => {
  for (const environment of [undefined, null, { type: 'local', skills: [] }])
    t.equal(clientToolType({ type: 'shell', environment }), 'shell');
  for (const type of ['container_auto', 'container_reference'])
    t.equal(clientToolType({ type: 'shell', environment: { type } }), null);
  t.equal(clientToolType({ type: 'apply_patch' }), 'apply_patch');
});

test('lines for a shell and patches come back as the items have them', async (t) => {
  const none = { timeout_ms: null, max_output_length: null };
  t.strictSame(members('shell', { commands: ['ls', 'pwd'], timeout_ms: 5 }), {
    action: { ...none, commands: ['ls', 'pwd'], timeout_ms: 5 },
    environment: null,
  });
  t.match(members('shell', { commands: 'ls' }), { action: { commands: ['ls'] } });
  for (const odd of [{}, { commands: [5] }, { commands: null }, [1], null])
    t.strictSame(members('shell', odd), { action: { ...none, commands: [] }, environment: null });
  const patch = { type: 'create_file', path: 'a', diff: '+x' };
  t.strictSame(members('apply_patch', { ...patch, more: 1 }), { operation: patch });
  t.strictSame(members('apply_patch', { ...patch, type: 'delete_file' }), {
    operation: { type: 'delete_file', path: 'a' },
  });
  t.strictSame(members('apply_patch', null), { operation: { type: 'update_file', path: '', diff: '' } });
});

test('what came of them is a text', async (t) => {
  const output = [
    { stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } },
    { stdout: '', stderr: 'b', outcome: { type: 'timeout' } },
    5,
    {},
  ];
  t.equal(
    clientOutputOf({ type: 'shell_call_output', output }),
    'a\n[exit code 0]\nb\n[timed out]\n[exit code unknown]',
  );
  t.equal(clientOutputOf({ type: 'shell_call_output' }), '');
  const patched = { type: 'apply_patch_call_output' };
  t.equal(clientOutputOf({ ...patched, status: 'completed', output: 'Created a' }), 'Done. Created a');
  t.equal(clientOutputOf({ ...patched, status: 'failed', output: null }), 'Failed.');
  t.equal(clientOutputOf({ type: 'computer_call_output', output: 'x' }), null);
});
