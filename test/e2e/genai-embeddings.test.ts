import { test } from 'tap';
import { atOnce } from '../../src/wire/steps.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { bodyOf, createClient, raised, sdks } from '../support/sdks/genai.js';

const kinds = ['simulator', 'chat', 'generateContent'] as const satisfies readonly ServedBy[];
const model = 'sim-embedding';

/** The cosine of the angle between two vectors of length 1. */
function nearness(a: readonly number[] = [], b: readonly number[] = []): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: one content and several have an embedding each`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const { models } = createClient(sdk, gateway);
      const one = await models.embedContent({ model, contents: 'the weather in Oslo' });
      t.equal(one.embeddings?.length, 1);
      t.equal(one.embeddings?.[0]?.values?.length, 256);
      const config = { outputDimensionality: 64, taskType: 'RETRIEVAL_DOCUMENT', title: 'weather' };
      const contents = ['the weather in Oslo', 'in Oslo, the weather', 'a fox and a hound'];
      const several = await models.embedContent({ model: `models/${model}`, contents, config });
      const [first, near, far] = several.embeddings?.map(({ values }) => values) ?? [];
      t.equal(first?.length, 64);
      t.ok(nearness(first, near) > nearness(first, far));
      t.equal(several.embeddings?.length, 3);
      const { requests } = atOnce(gateway.gateway.inspectSteps());
      t.ok(requests.every(({ protocol, inputTokens }) => protocol === 'embeddings' && inputTokens > 0));
    });

    test(`${served}: what is wrong is told in the SDK's form`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const unknown = await raised(sdk, models.embedContent({ model: 'none', contents: 'a' }));
      t.equal(unknown.status, 404);
      t.match(bodyOf(unknown), { code: 404, status: 'NOT_FOUND' });
      const text = await raised(sdk, models.embedContent({ model: 'sim-text', contents: 'a' }));
      t.equal(text.status, 404, 'a model that is not offered for embeddings');
      const limited = models.embedContent({ model, contents: '[[fault:status=400]] a' });
      t.match(bodyOf(await raised(sdk, limited)), { code: 400, status: 'INVALID_ARGUMENT' });
    });
  }

  test(`${sdk.name}: the list of models says who embeds`, async (t) => {
    const { models } = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const { supportedActions } = await models.get({ model });
    t.strictSame(supportedActions, ['embedContent', 'batchEmbedContents']);
    t.notOk((await models.get({ model: 'sim-text' })).supportedActions?.includes('embedContent'));
  });
}
