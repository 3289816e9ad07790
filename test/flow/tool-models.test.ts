import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { ask } from '../support/media/gateway.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const answer = jsonAnswer(200, '{}');

/** A gateway whose key may use the models `m`, `r`, `translated`, `open` and `picture`, and no others. */
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
        translated: { ...of('translated', 'chat'), protocols: ['responses'] },
        picture: of('picture-there', 'images'),
        best: of('picture', 'images'),
      },
      groups: { default: { models: ['m', 'r', 'translated', 'open', 'picture'] } },
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
  const responses = (rest: string, model = 'r') =>
    ask(gateway, 'POST', '/v1/responses', {
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(`{"model":"${model}","store":false,${rest}}`),
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
  for (const type of ['advisor_\\u00320260301', 'advisor\\u005F20260301'])
    t.match(await messages(`[{"type":"${type}","name":"advisor","model":"closed"}]`), notFound, type);
  t.match(await messages(`[${advisor('"closed"')}]`, '/v1/messages', 't\\u006fols'), notFound);
  const image = '{"type":"image_generation","model":"images-there"}';
  t.match(await responses(`"input":"x","tools":[${image}]`), notFound);
  t.match(await responses(`"input":[{"type":"additional_tools","tools":[${image}]}]`), notFound);
  t.equal(upstream.requests.length, 0);
});

test('no tool of OpenRouter, nor one within its parameters, is run by a model that the key may not use', async (t) => {
  const { upstream, responses } = await start(t);
  const inner = '{"type":"openrouter:image_generation","parameters":{"model":"images-there"}}';
  for (const parameters of [
    '{"model":"images-there"}',
    '{"analysis_models":["open","closed"]}',
    `{"tools":[{"type":"openrouter:web_search"},${inner}]}`,
    '{"models":[{"slug":"images"}]}',
    '{"judge_model":"closed"}',
  ])
    t.match(
      await responses(`"input":"x","tools":[{"type":"openrouter:subagent","parameters":${parameters}}]`),
      notFound,
      parameters,
    );
  t.equal(upstream.requests.length, 0);
});

test('no other spelling of a name reaches a model that the key may not use', async (t) => {
  const { upstream, messages } = await start(t);
  for (const name of ['closed:nitro', 'closed-there:floor', '~closed', 'CLOSED-There:nitro'])
    t.match(await messages(`[${advisor(`"${name}"`)}]`), notFound, name);
  t.equal(upstream.requests.length, 0);
  for (const name of ['open-there:nitro', 'of-the-vendor:nitro', ':nitro'])
    t.match(await messages(`[${advisor(`"${name}"`)}]`), { status: 200 }, name);
});

test('an open name of the config opens no model that the upstream calls so', async (t) => {
  const { upstream, responses } = await start(t);
  const tools = (model: string) => `"input":"x","tools":[{"type":"image_generation","model":"${model}"}]`;
  t.match(await responses(tools('picture')), notFound);
  t.equal(upstream.requests.length, 0);
  t.match(await responses(tools('picture-there')), { status: 200 });
});

test('a tool that is left out of a translated call may name any model', async (t) => {
  const { upstream, responses } = await start(t);
  const tools = ['{"type":"image_generation","model":"images-there"}', '{"type":"function","name":"f"}'];
  await responses(`"input":"x","tools":[${tools}]`, 'translated');
  t.equal(upstream.requests.length, 1);
  const sent = upstream.requests[0]?.body.toString() ?? '';
  t.match(sent, /"f"/);
  t.notMatch(sent, /image/);
});

test('a tool whose model parsers read differently is refused', async (t) => {
  const { upstream, messages, responses } = await start(t);
  for (const tool of [
    '{"type":"advisor_20260301","model":"open","model":"closed-there"}',
    '{"type":"advisor_20260301","Model":"closed-there"}',
    '{"type":"function","type":"advisor_20260301","model":"closed-there"}',
    '{"type":"custom","Type":"advisor_20260301","model":"closed-there"}',
  ])
    t.match(await messages(`[${tool}]`), { status: 400 }, tool);
  const twice = '{"tools":[{"type":"x","parameters":{"model":"closed","model":"open"}}]}';
  t.match(await responses(`"input":"x","tools":[{"type":"openrouter:subagent","parameters":${twice}}]`), {
    status: 400,
  });
  t.equal(upstream.requests.length, 0);
});

test('the tools of a request name up to 256 models, and any of them as often as they like', async (t) => {
  const { upstream, responses } = await start(t);
  const fusion = (names: readonly string[]) =>
    `{"type":"openrouter:fusion","parameters":{"models":${JSON.stringify(names)}}}`;
  const names = Array.from({ length: 257 }, (_, index) => `of-the-vendor-${index}`);
  const most = names.slice(1);
  t.match(await responses(`"input":"x","tools":[${fusion([...most, ...most])},${fusion(most)}]`), {
    status: 200,
  });
  t.equal(upstream.requests.length, 1);
  const tooMany = { status: 400, text: /The tools of the request name more than 256 models/ };
  t.match(await responses(`"input":"x","tools":[${fusion(names)}]`), tooMany);
  t.match(
    await responses(
      `"input":[{"type":"additional_tools","tools":[${fusion(most)}]}],"tools":[${fusion(names.slice(0, 2))}]`,
    ),
    tooMany,
    'in several lists',
  );
  t.equal(upstream.requests.length, 1);
});

test('other models of tools are left to the upstream', async (t) => {
  const { upstream, messages, responses } = await start(t);
  for (const tool of [
    advisor('"open-there"'),
    advisor('"of-the-vendor"'),
    advisor('null'),
    '{"name":"advisor","input_schema":{"type":"object","properties":{"model":{"const":"closed"}}}}',
    '{"type":"custom","name":"advisor","input_schema":{},"model":"closed"}',
    '{"type":"custom","name":"f","description":"an advisor_2","input_schema":{},"model":1,"Model":"closed"}',
    // No mark has such a character.
    '{"name":"f","description":"the user\\u2019s \\u00e9 \\u003c","input_schema":{},"model":1,"Model":2}',
  ])
    t.match(await messages(`[${tool}]`), { status: 200 }, tool);
  t.equal(
    (await responses('"input":"x","tools":[{"type":"image_generation","model":"gpt-image-1"}]')).status,
    200,
  );
  t.equal(upstream.requests.length, 8);
});
