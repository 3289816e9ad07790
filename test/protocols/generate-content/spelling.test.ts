import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'tap';
import { inCamelCase } from '../../../src/protocols/generate-content/spelling.js';

test('members with either of their names are found under the first', async (t) => {
  const spelled = { topP: 1, max_output_tokens: 2, _response_json_schema: {}, seed: 3 };
  t.strictSame(inCamelCase(spelled), { topP: 1, maxOutputTokens: 2, _responseJsonSchema: {}, seed: 3 });
  t.strictSame(
    inCamelCase({ top_k: 1, topK: 2 }),
    { topK: 2 },
    'as elsewhere the first name counts before the other',
  );
  t.strictSame(inCamelCase({ topK: null, top_k: 1 }), { topK: 1 }, 'and null says nothing');
});

test('an object in lowerCamelCase is taken as it is', async (t) => {
  const object = { topP: 1, _responseJsonSchema: {} };
  t.equal(inCamelCase(object), object);
});

test('members that nobody knows have their own values, and leave nothing behind', async (t) => {
  t.strictSame(inCamelCase({ to_string: 1, a_b: 2 }), { toString: 1, aB: 2 });
  t.strictSame(inCamelCase({ top_k: 1, topK: null, has_own_property: null }), {
    topK: 1,
    hasOwnProperty: null,
  });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const remembered = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = remembered();
  for (let body = 0; body < 200; body += 1) {
    const members = Array.from({ length: 1000 }, (_, index) => [`sent_${body}_${index}`, 1]);
    inCamelCase(Object.fromEntries(members) as Record<string, number>);
  }
  t.ok(remembered() - before < 8_000_000, 'names that clients make up are not remembered');
});
