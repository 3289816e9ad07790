import { OpenAI } from 'openai7';
import { test } from 'tap';
import { testKey } from '../gateway.js';
import { textProtocols } from '../translated.js';
import { startStrictStage } from './stage.js';

for (const wire of textProtocols)
  test(`a conversation is compacted and goes on on a strict ${wire} upstream`, async (t) => {
    const { url, upstream } = await startStrictStage(t, wire);
    const client = new OpenAI({ apiKey: testKey, baseURL: `${url}/v1`, maxRetries: 0 });
    const first = await client.responses.create({ model: 'm', input: 'cell:text' });
    const { output } = await client.responses.compact({
      model: 'm',
      previous_response_id: first.id,
      input: [],
    });
    t.match(output.at(-1), { type: 'compaction', id: String, encrypted_content: String });
    const input = [...output, { role: 'user', content: 'cell:text' }] as OpenAI.Responses.ResponseInput;
    const next = await client.responses.create({ model: 'm', input });
    t.equal(next.output_text, 'The answer to text.');
    t.same(
      upstream.heard.map(({ broken }) => broken).filter((broken) => broken !== null),
      [],
    );
  });

test('a strict responses upstream takes a compaction only as it gave it', async (t) => {
  const { url, upstream } = await startStrictStage(t, 'responses');
  const client = new OpenAI({ apiKey: testKey, baseURL: `${url}/v1`, maxRetries: 0 });
  const item = { type: 'compaction' as const, encrypted_content: 'of another' };
  await t.rejects(client.responses.create({ model: 'm', input: [item, { role: 'user', content: 'x' }] }));
  t.match(upstream.heard.at(-1)?.broken, 'could not be verified');
});
