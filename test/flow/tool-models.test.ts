import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { ask } from '../support/media/gateway.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const answer = jsonAnswer(200, '{}');

/** A gateway whose key may use the models `m`, `r` and `open`, and not `closed`. */
async function start(t: Test) {
  const upstream = await startRawUpstream(t, answer);
  const of = (name: string, protocol: string, more: object = {}) => ({
    protocols: [protocol],
    targets: [{ upstream: protocol === 'messages' ? 'claude' : 'u0', model: name, ...more }],
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      upstreams: {
        u0: { kind: 'chat', baseUrl: `${upstream.url}/v1`, apiKeys: ['sk-upstream'] },
        claude: { kind: 'messages', baseUrl: `${upstream.url}/v1`, apiKeys: ['sk-upstream'] },
      },
      models: {
        m: of('m', 'messages'),
        r: of('r', 'responses', { responses: true }),
        open: of('open-there', 'messages'),
        closed: of('closed-there', 'messages'),
        images: of('images-there', 'images'),
      },
      groups: { default: { models: ['m', 'r', 'open'] } },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'] }],
    },
  });
  const messages = (tools: string, path = '/v1/messages', name = 'tools') =>
    ask(gateway, 'POST', path, {
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: Buffer.from(
        `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"${name}":${tools}}`,
      ),
    });
  const responses = (rest: string) =>
    ask(gateway, 'POST', '/v1/responses', {
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(`{"model":"r","store":false,${rest}}`),
    });
  return { upstream, messages, responses };
}

const advisor = (model: string) => `{"type":"advisor_20260301","name":"advisor","model":${model}}`;
const notFound = { status: 404, text: /model_not_found|not_found_error/ };

test('a tool is run by no model that the key may not use', async (t) => {
  const { upstream, messages, responses } = await start(t);
  for (const name of ['"closed"', '"closed-there"', '"closed-th\\u0065re"']) {
    t.match(await messages(`[${advisor(name)}]`), notFound);
    t.match(await messages(`[${advisor(name)}]`, '/v1/messages/count_tokens'), notFound);
  }
  t.match(await messages(advisor('"closed-there"')), notFound, 'one that is in no list');
  t.match(
    await messages(
      '[{"name":"f","input_schema":{}},{"t\\u0079pe":"adv\\u0069sor_20260301","m\\u006fdel":"closed"}]',
    ),
    notFound,
  );
  t.match(await messages(`[${advisor('"closed"')}]`, '/v1/messages', 't\\u006fols'), notFound);
  for (const parameters of ['{"model":"images-there"}', '{"analysis_models":["open","closed"]}'])
    t.match(
      await responses(`"input":"x","tools":[{"type":"openrouter:fusion","parameters":${parameters}}]`),
      notFound,
    );
  const image = '{"type":"image_generation","model":"images-there"}';
  t.match(await responses(`"input":"x","tools":[${image}]`), notFound);
  t.match(await responses(`"input":[{"type":"additional_tools","tools":[${image}]}]`), notFound);
  t.equal(upstream.requests.length, 0);
});

test('a tool whose model parsers read differently is refused', async (t) => {
  const { upstream, messages } = await start(t);
  for (const tool of [
    '{"type":"advisor_20260301","model":"open","model":"closed-there"}',
    '{"type":"advisor_20260301","Model":"closed-there"}',
    '{"type":"function","type":"advisor_20260301","model":"closed-there"}',
  ])
    t.match(await messages(`[${tool}]`), { status: 400 }, tool);
  t.equal(upstream.requests.length, 0);
});

test('other models of tools are left to the upstream', async (t) => {
  const { upstream, messages, responses } = await start(t);
  for (const tool of [
    advisor('"open-there"'),
    advisor('"of-the-vendor"'),
    advisor('null'),
    '{"name":"advisor","input_schema":{"type":"object","properties":{"model":{"const":"closed"}}}}',
    '{"type":"custom","name":"advisor","input_schema":{},"model":"closed"}',
  ])
    t.match(await messages(`[${tool}]`), { status: 200 }, tool);
  t.equal(
    (await responses('"input":"x","tools":[{"type":"image_generation","model":"gpt-image-1"}]')).status,
    200,
  );
  t.equal(upstream.requests.length, 6);
});
