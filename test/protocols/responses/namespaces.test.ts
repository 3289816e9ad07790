import assert from 'node:assert/strict';
import { test } from 'tap';
import { clientTools, listTools, upstreamName } from '../../../src/protocols/responses/namespaces.js';
import { cases, fc } from '../../support/seed.js';
import { decode } from './conversation.js';

const tool = (name: string) => ({ type: 'function', name, parameters: {} });
const space = (name: string, ...tools: unknown[]) => ({ type: 'namespace', name, tools });
const listOf = (...tools: unknown[]) => listTools([{ tools, at: 'tools' }]);
const namesOf = (...tools: unknown[]) => listOf(...tools).listed.map(({ name }) => name);
const call = (id: string, name: string) => ({ type: 'function_call', call_id: id, name, arguments: '{}' });

test('tools in a namespace keep their names where no other has them', async (t) => {
  const tool = (name: string) => ({ type: 'function', name, parameters: {} });
  const request = decode({
    tools: [
      tool('read'),
      { type: 'namespace', name: 'files', tools: [tool('read'), tool('write'), { type: 'mcp' }] },
      { type: 'namespace', name: 'empty' },
    ],
    tool_choice: { type: 'function', name: 'read', namespace: 'files' },
    input: [
      { ...call('c1', 'read'), namespace: 'files' },
      { ...call('c2', 'read') },
      { ...call('c3', 'write'), namespace: 'files' },
    ],
  });
  t.same(
    request.tools.map(({ name }) => name),
    ['read', 'files__read', 'write'],
  );
  t.same(request.hostedTools, [
    { type: 'mcp', at: 'tools[1].tools[2]' },
    { type: 'namespace', at: 'tools[2]' },
  ]);
  t.same(request.toolChoice, { mode: 'named', name: 'files__read' });
  t.match(request.turns, [{ parts: [{ name: 'files__read' }, { name: 'read' }, { name: 'write' }] }]);
});

test('names that would meet get an end of their own', async (t) => {
  const [first, second, third] = namesOf(space('a', tool('x')), space('b', tool('x')), tool('a__x'));
  t.match(first, /^a__x_[\w-]{8}$/);
  t.equal(second, 'b__x');
  t.equal(third, 'a__x', 'one of the client itself stays');
  const [one, other] = namesOf(space('a__b', tool('x')), space('a', tool('b__x')), tool('x'), tool('b__x'));
  t.equal(one, 'a__b__x');
  t.match(other, /^a__b__x_[\w-]{8}$/);
  const dotted = namesOf(space('n', tool('a.b'), tool('a_b')));
  t.equal(dotted[0], 'a_b');
  t.match(dotted[1], /^a_b_[\w-]{8}$/);
});

test('whatever the list, tools in namespaces have legal names of their own and are found by them', async (t) => {
  const name = fc.oneof(
    fc.constantFrom('a', 'a.b', 'a_b', 'n__a', 'ä', 'x'.repeat(70), 'x'.repeat(64)),
    fc.string({ minLength: 1 }),
  );
  const spaces = fc.uniqueArray(fc.tuple(fc.constantFrom('n', 'n.', 'm', 'y'.repeat(64)), name), {
    maxLength: 12,
    selector: (pair) => pair.join('\n'),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom('a', 'a_b', 'n__a', 'm__a'), { maxLength: 3 }),
      spaces,
      (top, pairs) => {
        const tools = [...pairs.map(([namespace, own]) => space(namespace, tool(own))), ...top.map(tool)];
        const list = listOf(...tools);
        const names = list.listed.map((each) => each.name);
        assert.equal(new Set(names).size, names.length, names.join(' '));
        const known = clientTools(list);
        for (const [namespace, own] of pairs) {
          const upstream = upstreamName(list, namespace, own);
          assert.match(upstream, /^[A-Za-z0-9_-]{1,64}$/);
          assert.deepEqual(known?.get(upstream), { namespace, name: own, type: null });
        }
        for (const own of top) assert.equal(known?.get(own), undefined);
      },
    ),
    { numRuns: cases(500) },
  );
  t.pass();
});
