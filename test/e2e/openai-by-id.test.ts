import { type Test, test } from 'tap';
import { keptIn } from '../support/conversations.js';
import { testKey } from '../support/gateway.js';
import { scriptedModel } from '../support/scripted-calls.js';
import { createClient, raised, type Sdk, sdks } from '../support/sdks/openai.js';
import { textOf } from '../support/sdks/openai-responses.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startTranslated } from '../support/translated.js';

async function clientOf(t: Test, sdk: Sdk) {
  const answer = scriptedModel('chat', [{ text: 'one' }, { text: 'two' }]);
  const gateway = await startTranslated(t, { answer, config: keptIn(temporaryFolder(t)) });
  return createClient(sdk, gateway, { apiKey: testKey });
}

for (const sdk of sdks) {
  test(`${sdk.name}: a response is retrieved, its input listed, and it is deleted`, async (t) => {
    const client = await clientOf(t, sdk);
    const first = await client.responses.create({ model: 'm', input: 'hello' });
    const stream = await client.responses.create({
      model: 'm',
      input: [{ role: 'user', content: 'again' }],
      previous_response_id: first.id,
      stream: true,
    });
    let last = '';
    for await (const event of stream) if (event.type === 'response.completed') last = event.response.id;
    const shown = await client.responses.retrieve(last);
    t.equal(shown.id, last);
    t.equal(textOf(shown), 'two');
    t.equal(shown.previous_response_id, first.id);

    const said: string[] = [];
    for await (const item of client.responses.inputItems.list(last, { limit: 1, order: 'asc' }))
      if (item.type === 'message')
        said.push(...item.content.map((part) => ('text' in part ? part.text : '')));
    t.strictSame(said, ['hello', 'one', 'again']);

    const { delete: remove } = client.responses as { delete?: (id: string) => Promise<unknown> };
    if (remove === undefined) await client.delete(`/responses/${first.id}`);
    else await client.responses.delete(first.id);
    for (const call of [client.responses.retrieve(first.id), client.responses.cancel(first.id)])
      t.equal((await raised(sdk, call)).status, 404);
    t.equal((await raised(sdk, client.responses.cancel(last))).status, 400);
  });
}
