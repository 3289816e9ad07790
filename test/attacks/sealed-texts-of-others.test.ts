import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { testKey } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { postJson } from '../support/post-json.js';
import { startTranslated } from '../support/translated.js';
import { completion, jsonAnswer } from '../support/upstream.js';

const strangerKey = 'sk-stranger';
const said = JSON.parse(completion).choices[0].message.content;

/** What stands behind the summary that a model has written. */
const question = 'What did we say?';

test('a compaction opens for the key that it was made for, and for no other', async (t) => {
  const gateway = await startTranslated(t, {
    answer: jsonAnswer(200, completion),
    config: {
      secret: sharedSecret,
      keys: [
        { id: 'test', hash: hashKey(testKey), groups: ['default'] },
        { id: 'stranger', hash: hashKey(strangerKey), groups: ['default'] },
      ],
    },
  });
  const ask = async (key: string, path: string, body: object) => {
    const answer = await postJson(
      `${gateway.url}${path}`,
      { model: 'm', ...body },
      { authorization: `Bearer ${key}` },
    );
    t.equal(answer.status, 200);
    return JSON.parse(await answer.text());
  };
  const { output } = await ask(testKey, '/v1/responses/compact', { input: 'a secret of this key' });
  const carried = output.filter(({ type }: { type: string }) => type === 'compaction');
  t.equal(carried.length, 1);
  const goOn = async (key: string): Promise<string> => {
    await ask(key, '/v1/responses', { input: [...carried, { role: 'user', content: question }] });
    return gateway.upstream.requests.at(-1)?.body.toString() ?? '';
  };
  t.match(await goOn(testKey), `${said}`);
  const ofStranger = await goOn(strangerKey);
  t.match(ofStranger, question);
  t.notMatch(ofStranger, `${said}`);
});
