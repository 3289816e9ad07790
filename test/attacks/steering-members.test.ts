import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { steeringMembers } from '../../src/wire/routed-members.js';
import { startGateway, testConfig } from '../support/gateway.js';
import { mediaConfig } from '../support/media/gateway.js';
import { goodAnswer } from '../support/routed.js';
import { places } from '../support/seed.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { headers, refusedThere, samples, startHearing } from './alike-members.js';

const variants = (name: string) => [
  name,
  name.toUpperCase(),
  name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  name.replace('s', '\u017f'),
];
const chatBody = (more: object) =>
  JSON.stringify({ model: 'native', messages: [{ role: 'user', content: 'hi' }], ...more });

test('no member that leads an upstream elsewhere reaches one, on any endpoint', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  for (const [at, { what, path, body }] of samples.entries()) {
    const isTranslated = what.includes('at a ');
    for (const place of places(0, steeringMembers.length)) {
      const name = steeringMembers[place] ?? '';
      // Each endpoint gets each name, in one of its spellings.
      const spellings = variants(name);
      const spelled = spellings[at % spellings.length] ?? name;
      const before = upstream.requests.length;
      const answer = await fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...body, [spelled]: 'x' }),
      });
      const text = await answer.text();
      const isRefused = answer.status === 400 && text.includes(name) && text.includes('allowMembers');
      const sent = upstream.requests.slice(before);
      const isLeftOut = sent.length === 1 && !sent[0]?.body.includes(`"${spelled}"`);
      if (isTranslated ? !isLeftOut : !isRefused || sent.length > 0)
        t.fail(`${what}: ${spelled}`, { status: answer.status, text });
    }
  }
});

test('an upstream whose config allows a member gets it as it came, and no other one', async (t) => {
  const { gateway, upstream } = await startHearing(t, { allowMembers: ['provider', 'route'] });
  const ask = async (more: object) => {
    const body = chatBody(more);
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await answer.text();
    return { status: answer.status, body };
  };
  const allowed = await ask({ provider: { order: ['a'] }, route: 'fallback' });
  t.equal(allowed.status, 422);
  t.equal(upstream.requests[0]?.body.toString(), allowed.body.replace('"native"', '"real"'));
  t.equal((await ask({ provider: {}, models: ['dear'] })).status, 400);
  t.equal((await ask({ api_base: 'https://x' })).status, 400);
  t.equal((await ask({ plugins: [{ id: 'fusion', model: 'dear' }] })).status, 400);
  t.equal((await ask({ lora_path: 'of-others' })).status, 400);
  t.equal((await ask({ bootstrap_host: 'x', bootstrap_port: 1, bootstrap_room: 1 })).status, 400);
  t.equal((await ask({ kv_transfer_params: { remote_host: 'x', remote_port: 1 } })).status, 400);
  t.equal((await ask({ ec_transfer_params: { image: { peer_host: 'x' } } })).status, 400);
  t.equal((await ask({ disaggregated_params: { ctx_info_endpoint: 'x' } })).status, 400);
  t.equal((await ask({ draft_model: 'x' })).status, 400);
  t.equal(upstream.requests.length, 1);
});

test('plugins that ask no other model reach the upstream, and no others do', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  const ask = async (plugins: string) => {
    const body = chatBody({}).replace('{', `{"plugins":${plugins},`);
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await answer.text();
    return { status: answer.status, sent: body.replace('"native"', '"real"') };
  };
  const passed = [
    'null',
    '[]',
    '[{"id":"response-healing"}]',
    '[{"id":"web","max_results":3},{"id":"file-parser","pdf":{"engine":"cloudflare-ai"}}]',
  ];
  for (const [at, plugins] of passed.entries()) {
    const { status, sent } = await ask(plugins);
    t.equal(status, 422, plugins);
    t.equal(upstream.requests[at]?.body.toString(), sent);
  }
  for (const plugins of [
    '[{"id":"fusion"}]',
    '[{"id":"web"},{"id":"auto-router"}]',
    '[{"id":"unknown"}]',
    '[{"id":["web"]}]',
    '[["web"]]',
    '["web"]',
    '{"id":"web"}',
    '"web"',
    '[{"id":"fusion","id":"web"}]',
    '[{"ID":"fusion","id":"web"}]',
    '[{"id":"web"}],"Plugins":[{"id":"fusion"}]',
  ])
    t.equal((await ask(plugins)).status, 400, plugins);
  t.equal(upstream.requests.length, passed.length);
});

test('an adapter, a draft model and a server of caches may be null, which servers take as absent', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  const ask = async (more: string) => {
    const body = chatBody({}).replace('{', `{${more},`);
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await answer.text();
    return { status: answer.status, sent: body.replace('"native"', '"real"') };
  };
  const names = steeringMembers.slice(steeringMembers.indexOf('lora_path'));
  t.equal(names.length, 9);
  // Whether or not the body has to be parsed, here for the escape.
  for (const more of ['', ',"us\u0065r":"x"']) {
    const { status, sent } = await ask(`${names.map((name) => `"${name}":null`)}${more}`);
    t.equal(status, 422);
    t.equal(upstream.requests.at(-1)?.body.toString(), sent);
    for (const name of names) t.equal((await ask(`"${name}":null,"${name}":"x"${more}`)).status, 400, name);
    t.equal((await ask(`"api_base":null${more}`)).status, 400);
  }
  t.equal(upstream.requests.length, 2);
});

test('a translated call is not refused for members that no translation sends on', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  const steering = Object.fromEntries(steeringMembers.map((name) => [name, 'x']));
  for (const model of ['claude', 'gemini']) {
    const body = chatBody({ model, ...steering });
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    t.match(await answer.text(), refusedThere);
  }
  for (const { body } of upstream.requests)
    t.notOk(steeringMembers.some((name) => body.includes(`"${name}"`)));
  t.equal(upstream.requests.length, 2);
});

test('of the targets of a model those are asked, too, that get the call translated', async (t) => {
  const [strict, translated] = await Promise.all([
    startRawUpstream(t, goodAnswer),
    startRawUpstream(t, jsonAnswer(422, '{}')),
  ]);
  const target = (upstream: string, priority: number) => ({ upstream, model: 'real', priority });
  const { url } = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { strict: { baseUrl: strict.url }, claude: { kind: 'messages', baseUrl: translated.url } },
      models: { native: { protocols: ['chat'], targets: [target('strict', 0), target('claude', 1)] } },
    }),
  });
  const body = chatBody({ provider: {} });
  await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).text();
  t.same([strict.requests.length, translated.requests.length], [0, 1]);
});

test('of the targets of a model only those are asked that allow the member, failover included', async (t) => {
  const [strict, failing, open] = await Promise.all([
    startRawUpstream(t, goodAnswer),
    startRawUpstream(t, jsonAnswer(500, '{}')),
    startRawUpstream(t, goodAnswer),
  ]);
  const target = (upstream: string, priority: number) => ({ upstream, model: 'real', priority });
  const { url } = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: {
        strict: { baseUrl: strict.url },
        failing: { baseUrl: failing.url, allowMembers: ['provider'] },
        alsoStrict: { baseUrl: strict.url, allowMembers: ['route'] },
        open: { baseUrl: open.url, allowMembers: ['provider', 'models'] },
      },
      models: {
        native: {
          protocols: ['chat'],
          targets: [target('strict', 0), target('failing', 1), target('alsoStrict', 2), target('open', 3)],
        },
      },
    }),
  });
  const ask = async (more: object) => {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: chatBody(more),
    });
    return { status: answer.status, text: await answer.text() };
  };
  t.equal((await ask({ provider: {} })).status, 200);
  t.same([strict.requests.length, failing.requests.length, open.requests.length], [0, 1, 1]);
  t.equal((await ask({})).status, 200);
  t.equal(strict.requests.length, 1);
  const both = await ask({ route: 'x', models: [] });
  t.match(both, { status: 400, text: /'route' and 'models'/ });
  t.match(await ask({ api_key: 'x', provider: {} }), { status: 400, text: /has 'api_key',/ });
});

test('a config that allows what is no such member is refused', (t) => {
  const config = (allowMembers: unknown) =>
    JSON.stringify(testConfig({ upstreams: ['http://127.0.0.1:1/v1'], upstream: { allowMembers } }));
  const load = (text: string) => parseConfig(text, { directory: '.', environment: {}, created: 1 });
  for (const bad of [['model'], ['Provider'], 'provider', [1]])
    t.throws(() => load(config(bad)), /allowMembers/, JSON.stringify(bad));
  t.doesNotThrow(() => load(config(['provider', 'models'])));
  t.end();
});
