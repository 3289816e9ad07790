import { test } from 'tap';
import { moderations, moderationsRequest } from '../../../src/protocols/moderations/index.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };

test('every form of input is accepted, with and without a model, and types unknown here', async (t) => {
  for (const input of ['', 'a', ['a', 'b'], [{ type: 'text', text: 'a' }, image], [{ type: 'audio' }]]) {
    takes(t, moderationsRequest, { input });
    takes(t, moderationsRequest, { input, model: 'm', user: 'u' });
  }
  takes(t, moderationsRequest, { input: 'a', model: null });
});

const refused: readonly Refused[] = [
  [{ model: 'm' }, 'input', "Missing required parameter 'input'"],
  [{ input: 'a', model: '' }, 'model', 'a non-empty string'],
  [{ messages: [] }, 'messages', 'POST /v1/chat/completions'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) =>
    refuses(t, moderationsRequest, one));
}

test('usage is read where an upstream counts', async (t) => {
  t.equal(moderations.usageOf(Buffer.from('{"id":"modr-1","results":[]}')), null);
  t.match(moderations.usageOf(Buffer.from('{"usage":{"prompt_tokens":4,"total_tokens":4}}')), { input: 4 });
});
