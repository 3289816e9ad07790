import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const queued = { id: 'resp_1', object: 'response', status: 'queued', model: 'm', output: [], usage: null };

test('a response in the background is refused where nobody would pay for it', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, JSON.stringify(queued)));
  const targets = [{ upstream: 'u0', model: 'm', responses: true }];
  const model = (more: object) => ({ protocols: ['responses'], targets, ...more });
  const limitedKey = 'sk-limited';
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: { unpriced: model({}), free: model({ price: {} }), priced: model({ price: { output: 1 } }) },
      keys: [
        { id: 'plain', hash: hashKey(testKey), groups: ['default'] },
        {
          id: 'limited',
          hash: hashKey(limitedKey),
          groups: ['default'],
          limits: { tokensPerMinute: 100_000 },
        },
      ],
    },
  });
  const ask = async (name: string, more: object, key = testKey) => {
    const answer = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: name, input: 'hi', ...more }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const refused = { status: 400, body: { error: { code: 'unsupported_parameter', param: 'background' } } };
  t.match(await ask('priced', { background: true }), refused);
  t.match(await ask('priced', { background: true, stream: true }), refused);
  t.match(await ask('unpriced', { background: true }, limitedKey), refused, 'tokens are limited');
  t.equal(upstream.requests.length, 0);
  for (const [name, more] of [
    ['unpriced', { background: true }],
    ['free', { background: true }],
    ['priced', { background: false }],
    ['priced', { background: null }],
    ['priced', { metadata: { background: 'true' } }],
  ] as const)
    t.equal((await ask(name, more)).status, 200, `${name} ${JSON.stringify(more)}`);
  t.equal(upstream.requests.length, 5);
});
