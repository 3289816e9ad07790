import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { collect, createClient, raised, sdks } from '../support/sdks/openai.js';

const answerText = 'Simulated answer to: weather in Oslo';
const dangerous = 'I will kill you with a grenade';

for (const sdk of sdks) {
  test(`${sdk.name}: completions, whole and streamed`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const asked = { model: 'sim-text', prompt: 'weather in Oslo' };
    const whole = await client.completions.create({ ...asked, max_tokens: 50 });
    t.match(whole, {
      id: /^cmpl-/,
      object: 'text_completion',
      model: 'sim-text',
      choices: [{ index: 0, text: answerText, finish_reason: 'stop', logprobs: null }],
      usage: { prompt_tokens: Number, completion_tokens: Number },
    });
    const { length } = (await client.completions.create({ ...asked, prompt: ['a', 'b'], n: 2 })).choices;
    t.equal(length, 4);
    t.equal(
      (await client.completions.create({ ...asked, max_tokens: 2 })).choices[0]?.finish_reason,
      'length',
    );

    const stream = await client.completions.create({
      ...asked,
      max_tokens: 50,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    t.equal(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join(''), answerText);
    t.ok((chunks.at(-1)?.usage?.total_tokens ?? 0) > 0);
    const silent = await collect(await client.completions.create({ ...asked, stream: true }));
    t.ok(silent.every((chunk) => !chunk.usage && chunk.choices.length === 1));

    const prompt = '[[fault:close after=2]] a';
    const broken = await client.completions.create({ ...asked, prompt, stream: true });
    t.match(await raised(sdk, collect(broken)), { code: 'upstream_error' });
    const bad = await raised(sdk, client.completions.create({ ...asked, max_tokens: -1 }));
    t.match(bad, { status: 400, param: 'max_tokens' });
  });

  test(`${sdk.name}: embeddings are the same in both encodings, but for single precision`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const asked = { model: 'sim-embedding', input: ['weather in Oslo', 'a hotel'] };
    // Without an encoding the SDK asks for base64 and decodes it.
    const usual = await client.embeddings.create(asked);
    const floats = await client.embeddings.create({ ...asked, encoding_format: 'float' });
    const text = await client.embeddings.create({ ...asked, encoding_format: 'base64' });
    t.match(usual, { object: 'list', model: 'sim-embedding', usage: { prompt_tokens: Number } });
    t.strictSame(
      usual.data.map((item) => item.index),
      [0, 1],
    );
    for (const [index, { embedding }] of usual.data.entries()) {
      t.equal(embedding.length, 256);
      t.strictSame([...embedding], floats.data[index]?.embedding.map(Math.fround));
      const bytes = Buffer.from(text.data[index]?.embedding as unknown as string, 'base64');
      t.strictSame(
        [...embedding],
        embedding.map((_, at) => bytes.readFloatLE(4 * at)),
      );
    }
    const small = await client.embeddings.create({ ...asked, dimensions: 8 });
    t.equal(small.data[0]?.embedding.length, 8);
    const tokens = await client.embeddings.create({ ...asked, input: [[1, 2], [3]] });
    t.equal(tokens.data.length, 2);
    const engine = await client.post<typeof usual>('/engines/sim-embedding/embeddings', {
      body: { input: asked.input, encoding_format: 'float' },
    });
    t.strictSame(engine.data, floats.data);
    const bad = await raised(sdk, client.embeddings.create({ ...asked, input: [] }));
    t.match(bad, { status: 400, param: 'input' });
    const missing = await raised(sdk, client.embeddings.create({ ...asked, model: 'sim-text' }));
    t.match(missing, { status: 404, code: 'model_not_found' });
  });

  test(`${sdk.name}: moderations of a text, of several and of parts`, async (t) => {
    const client = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const one = await client.moderations.create({ input: dangerous });
    t.match(one, { id: /^modr-/, model: 'sim-moderation' });
    t.equal(one.results.length, 1);
    t.match(one.results[0], { flagged: true, categories: { violence: true, hate: false } });
    t.ok((one.results[0]?.category_scores.violence ?? 0) > 0.5);
    const several = await client.moderations.create({ model: 'sim-moderation', input: ['hello', dangerous] });
    t.strictSame(
      several.results.map((result) => result.flagged),
      [false, true],
    );
    const parts = await client.moderations.create({
      input: [
        { type: 'text', text: 'hello' },
        { type: 'image_url', image_url: { url: 'https://example.com/violence.png' } },
      ],
    });
    t.equal(parts.results.length, 1);
    t.match(parts.results[0], {
      flagged: true,
      category_applied_input_types: { violence: ['text', 'image'], hate: ['text'] },
    });
    const bad = await raised(sdk, client.moderations.create({ input: 7 as unknown as string }));
    t.match(bad, { status: 400, param: 'input' });
  });
}
