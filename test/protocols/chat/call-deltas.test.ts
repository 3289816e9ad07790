import { test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { brief, chunk, decodeStream } from './samples.js';

const fragment = (index: number | undefined, more: JsonObject, id?: string) =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: more }] });
const stop = chunk({}, { finish_reason: 'stop' });
const done = '[DONE]';
const steps = (...data: (string | JsonObject)[]) => brief(decodeStream(...data));

test('calls that come one after the other end when the next begins', async (t) => {
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '' }, 'c1'),
      fragment(0, { arguments: '{"a":"}' }),
      fragment(0, { arguments: '\\""}' }),
      fragment(1, { name: 'g', arguments: '{}' }, 'c2'),
      chunk({}, { finish_reason: 'tool_calls' }),
      done,
    ),
    [
      'start',
      'callStart 0 c1 f',
      'callArguments 0 {"a":"}',
      'callArguments 0 \\""}',
      'callEnd 0',
      'callStart 1 c2 g',
      'callArguments 1 {}',
      'callEnd 1',
      'finish toolCalls',
      'end',
    ],
  );
});

test('calls that alternate stay open until they are whole', async (t) => {
  t.strictSame(
    steps(
      chunk({
        tool_calls: [
          { index: 0, id: 'c1', function: { name: 'f', arguments: '{"a"' } },
          { index: 1, id: 'c2', function: { name: 'g', arguments: '' } },
        ],
      }),
      fragment(0, { arguments: ':1}' }),
      fragment(1, { arguments: '[1' }),
      fragment(2, { name: 'h' }, 'c3'),
      fragment(0, { arguments: '\n' }),
      fragment(1, { arguments: ']' }),
      stop,
      done,
    ),
    [
      'start',
      'callStart 0 c1 f',
      'callArguments 0 {"a"',
      'callStart 1 c2 g',
      'callArguments 0 :1}',
      'callArguments 1 [1',
      'callEnd 0',
      'callStart 2 c3 h',
      'callArguments 1 ]',
      'callEnd 1',
      'callEnd 2',
      'finish toolCalls',
      'end',
    ],
  );
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '{}' }, 'c1'),
      fragment(1, { name: 'g', arguments: '{}' }, 'c2'),
      fragment(0, { arguments: '{"a":1}' }),
    ).at(-1),
    'error upstream_error',
    'what comes after the end of a call cannot be told any more',
  );
});

test('ids and names that are repeated begin no call', async (t) => {
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '{"a"' }, 'c1'),
      fragment(0, { name: 'f', arguments: ':' }, 'c1'),
      fragment(0, { name: '', arguments: '1' }, 'made-anew'),
      fragment(0, { name: 'f', arguments: '}' }, 'c1'),
      chunk({ tool_calls: [] }),
      chunk({ tool_calls: null }),
      stop,
      done,
    ).filter((step) => step.startsWith('call')),
    [
      'callStart 0 c1 f',
      'callArguments 0 {"a"',
      'callArguments 0 :',
      'callArguments 0 1',
      'callArguments 0 }',
      'callEnd 0',
    ],
  );
});

test('an empty fragment behind whole arguments begins no call, whatever its id', async (t) => {
  const told = steps(
    fragment(0, { name: 'f', arguments: '{"a":1}' }, 'c1'),
    fragment(0, { name: 'f', arguments: '' }, 'c2'),
    stop,
    done,
  );
  t.equal(told.filter((step) => step.startsWith('callStart')).length, 1);
});

test('without an index a new id begins a call', async (t) => {
  t.strictSame(
    steps(
      fragment(undefined, { name: 'f', arguments: '{"a":' }, 'c1'),
      fragment(undefined, { arguments: '1' }),
      fragment(undefined, { arguments: '}' }, 'c1'),
      fragment(undefined, { name: 'g', arguments: '{}' }, 'c2'),
      fragment(undefined, { name: 'h', arguments: { b: 2 } }),
      stop,
      done,
    ).filter((step) => step.startsWith('call')),
    [
      'callStart 0 c1 f',
      'callArguments 0 {"a":',
      'callArguments 0 1',
      'callArguments 0 }',
      'callEnd 0',
      'callStart 1 c2 g',
      'callArguments 1 {}',
      'callEnd 1',
      'callStart 2  h',
      'callArguments 2 {"b":2}',
      'callEnd 2',
    ],
  );
});

test('whole calls of one index are several', async (t) => {
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '{}' }, 'c1'),
      fragment(0, { name: 'g', arguments: '{"a":1}' }, 'c2'),
      stop,
    ).filter((step) => step.startsWith('callStart')),
    ['callStart 0 c1 f', 'callStart 1 c2 g'],
  );
});

test('calls of one index whose id and name differ are two, also where the first has no arguments', async (t) => {
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '' }, 'a'),
      fragment(0, { name: 'g', arguments: '{"x":1}' }, 'b'),
      stop,
    ).slice(1, -2),
    ['callStart 0 a f', 'callStart 1 b g', 'callArguments 1 {"x":1}', 'callEnd 0', 'callEnd 1'],
  );
  t.strictSame(
    steps(
      fragment(0, { name: 'f', arguments: '{"x"' }, 'a'),
      fragment(0, { name: 'f', arguments: ':1}' }, 'b'),
      stop,
    ).slice(1, -2),
    ['callStart 0 a f', 'callArguments 0 {"x"', 'callArguments 0 :1}', 'callEnd 0'],
    'an id that is new in each fragment tells nothing alone',
  );
});

test('without an index a known id goes on with its call, and others with the one before', async (t) => {
  t.strictSame(
    steps(
      fragment(undefined, { name: 'f', arguments: '{"x"' }, 'a'),
      fragment(undefined, { name: 'g', arguments: '{"y"' }, 'b'),
      fragment(undefined, { arguments: ':1' }, 'a'),
      fragment(undefined, { arguments: '}' }),
      fragment(undefined, { arguments: ':2}' }, 'b'),
      stop,
    ).slice(1, -2),
    [
      'callStart 0 a f',
      'callArguments 0 {"x"',
      'callStart 1 b g',
      'callArguments 1 {"y"',
      'callArguments 0 :1',
      'callArguments 0 }',
      'callArguments 1 :2}',
      'callEnd 0',
      'callEnd 1',
    ],
  );
  t.strictSame(
    steps(
      fragment(undefined, { name: 'f', arguments: '' }),
      fragment(undefined, { name: 'g', arguments: '{}' }),
      stop,
    ).slice(1, -2),
    ['callStart 0  f', 'callStart 1  g', 'callArguments 1 {}', 'callEnd 0', 'callEnd 1'],
    'without ids the names tell',
  );
});

test('null in place of arguments is none', async (t) => {
  t.strictSame(steps(fragment(0, { name: 'f', arguments: ' null' }, 'a'), stop).slice(1, -2), [
    'callStart 0 a f',
    'callEnd 0',
  ]);
  const custom = chunk({ tool_calls: [{ index: 0, id: 'a', custom: { name: 'g', input: 'null' } }] });
  t.strictSame(steps(custom, stop).slice(1, -2), [
    'callStart 0 a g custom',
    'callArguments 0 null',
    'callEnd 0',
  ]);
});

test('a name may come late, and a call without one is none', async (t) => {
  t.strictSame(
    steps(
      fragment(0, { arguments: '{"a"' }),
      fragment(0, { name: 'f', arguments: ':1}' }, 'c1'),
      fragment(1, { arguments: '{}' }, 'c2'),
      stop,
    ),
    [
      'start',
      'callStart 0 c1 f',
      'callArguments 0 {"a"',
      'callArguments 0 :1}',
      'callEnd 0',
      'finish toolCalls',
      'end',
    ],
  );
});

test('custom calls, and calls in the older form', async (t) => {
  const custom = (more: JsonObject) => chunk({ tool_calls: [{ index: 0, ...more }] });
  t.strictSame(
    steps(
      custom({ id: 'c1', type: 'custom', custom: { name: 'g', input: '{}' } }),
      custom({ custom: { input: ' and more' } }),
      fragment(1, { name: 'f', arguments: '{}' }, 'c2'),
      stop,
    ).slice(1, -2),
    [
      'callStart 0 c1 g custom',
      'callArguments 0 {}',
      'callArguments 0  and more',
      'callStart 1 c2 f',
      'callArguments 1 {}',
      'callEnd 0',
      'callEnd 1',
    ],
    'free text is never known to be whole',
  );
  t.strictSame(
    steps(
      chunk({ function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{}' } }),
      chunk({}, { finish_reason: 'function_call' }),
    ),
    ['start', 'callStart 0  f', 'callArguments 0 {}', 'callEnd 0', 'finish toolCalls', 'end'],
  );
});

test('what is kept of calls is bounded', async (t) => {
  const calls = Array.from({ length: 129 }, (_, index) => fragment(index, { name: 'f' }, `c${index}`));
  t.equal(steps(...calls.slice(0, 128), stop).at(-1), 'end');
  t.equal(steps(...calls, stop).at(-1), 'error upstream_error');
  const long = 'x'.repeat(1024 * 1024);
  const nameless = Array.from({ length: 9 }, () => fragment(0, { arguments: long }));
  t.equal(steps(...nameless, stop).at(-1), 'error upstream_error');
  const many = Array.from({ length: 9 }, (_, index) => fragment(index, { arguments: long }));
  t.equal(steps(...many, stop).at(-1), 'error upstream_error', 'over all calls');
  const choices = Array.from({ length: 9 }, (_, index) => ({
    choices: [{ index, delta: { tool_calls: [{ index: 0, function: { arguments: long } }] } }],
  }));
  t.equal(steps(...choices, done).at(-1), 'error upstream_error', 'and all choices');
  const named = many.flatMap((each, index) => [each, fragment(index, { name: 'f' })]);
  t.equal(steps(...named, stop).at(-1), 'end', 'what was told of is kept no longer');
});
