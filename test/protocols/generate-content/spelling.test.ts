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
