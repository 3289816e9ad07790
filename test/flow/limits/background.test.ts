import { test } from 'tap';
import { startGateway, testKey } from '../../support/gateway.js';
import { connect } from '../../support/responses-socket.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

test('over a WebSocket a response in the background is refused where nobody would pay for it', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(500, '{"error":{"message":"no"}}'));
  const targets = [{ upstream: 'u0', model: 'm', responses: true }];
  const model = (more: object) => ({ protocols: ['responses'], targets, ...more });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { models: { free: model({ price: {} }), priced: model({ price: { output: 1 } }) } },
  });
  const { send, answer } = await connect(t, gateway.url, { authorization: `Bearer ${testKey}` });
  const ask = async (name: string, more: object) => {
    send({ type: 'response.create', model: name, input: 'hi', ...more });
    return (await answer()).at(-1);
  };
  const refused = {
    type: 'error',
    status: 400,
    error: { code: 'unsupported_parameter', param: 'background' },
  };
  t.match(await ask('priced', { background: true }), refused);
  t.equal(upstream.arrivals.length, 0);
  for (const [name, more] of [
    ['free', { background: true }],
    ['priced', { background: false }],
    ['priced', { metadata: { background: 'true' } }],
  ] as const)
    t.notMatch(await ask(name, more), refused, `${name} ${JSON.stringify(more)}`);
});
