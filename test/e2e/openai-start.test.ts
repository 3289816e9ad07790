import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { createClient, helpers, sdks } from '../support/sdks/openai.js';

const messages = [{ role: 'user' as const, content: 'weather in Oslo' }];
const answerText = 'Simulated answer to: weather in Oslo';

test('every version of the SDK talks to the gateway as the command line starts it', async (t) => {
  const gateway = await startGateway(t, { workers: 2 });
  await Promise.all(
    sdks.map(async (sdk) => {
      const client = createClient(sdk, { url: gateway.baseUrl });
      t.equal((await client.models.list()).data.length, 9);
      const created = await client.chat.completions.create({ model: 'sim-text', messages });
      t.equal(created.choices[0]?.message.content, answerText);
      t.equal(
        await helpers(client).stream({ model: 'sim-text', messages }).finalContent(),
        answerText,
        `${sdk.name} streams`,
      );
    }),
  );
});
