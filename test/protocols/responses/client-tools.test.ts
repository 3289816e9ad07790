import { test } from 'tap';
import { clientCallMembers, clientCallOf } from '../../../src/protocols/responses/client-tools.js';

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
  t.equal(clientCallOf({ type: 'shell_call', call_id: 'c' }), null);
  t.match(clientCallOf({ type: 'local_shell_call', call_id: 'c', action: 5 }), { input: '{"command":[]}' });
  t.match(clientCallOf({ type: 'tool_search_call', call_id: 'c', arguments: '{"a":1}' }), {
    input: '{"a":1}',
  });
});
