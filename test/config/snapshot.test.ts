import { test } from 'tap';
import { demoConfig, isLoopback } from '../../src/config/demo.js';
import { resolveProxy } from '../../src/config/proxy.js';
import { defaults, type ResolvedConfig, resolvePrice } from '../../src/config/resolve.js';
import { createOrigin, needsSimulator } from '../../src/config/snapshot.js';
import { servableProtocols } from '../../src/config/upstream-kinds.js';
import { hashKey } from '../../src/keys/secret.js';
import { fc } from '../support/seed.js';
import { buildSnapshot } from '../support/snapshot.js';

const simulatorUrl = 'http://127.0.0.1:4242';
const plain = {
  ca: null,
  verify: true,
  serverName: null,
  clientCertificate: null,
  proxy: null,
  maxConnections: 1,
  maxWaiting: 1,
};

function keyOf(config: ResolvedConfig, key: string) {
  return buildSnapshot(config, { simulatorUrl }).keys.get(hashKey(key).slice('sha256:'.length));
}

test('the demo opens every model to one key and the text model to the other', (t) => {
  const config = demoConfig(1);
  t.strictSame(
    [...(keyOf(config, 'sk-demo')?.models.keys() ?? [])],
    ['embedding', 'image', 'moderation', 'realtime', 'rerank', 'speech', 'text', 'transcribe', 'video'].map(
      (name) => `sim-${name}`,
    ),
  );
  t.strictSame([...(keyOf(config, 'sk-demo-trial')?.models.keys() ?? [])], ['sim-text']);
  t.equal(keyOf(config, 'sk-other'), undefined);
  t.end();
});

test('the demo passes its own check: the simulator serves every protocol of every model', (t) => {
  for (const model of demoConfig(1).models) {
    for (const protocol of model.protocols) t.ok(servableProtocols('simulator').has(protocol), protocol);
  }
  t.end();
});

test('names become references, and targets come in order of priority', (t) => {
  const demo = demoConfig(5);
  const { translation } = defaults;
  const target = {
    upstream: 'simulator',
    weight: 1,
    responses: false,
    images: 'openai' as const,
    translation,
    preset: null,
    rules: null,
    firstTokenMs: null,
    cost: null,
  };
  const model = {
    name: 'm',
    protocols: ['chat' as const],
    targets: [
      { ...target, model: 'late', priority: 2 },
      { ...target, model: 'first', priority: 0 },
      { ...target, model: 'second', priority: 0, firstTokenMs: 3 },
    ],
    price: resolvePrice({ input: 1, output: 2 }),
    limits: null,
    budget: null,
    firstTokenMs: 8,
    hedgeMs: null,
    tokens: { input: null, output: null },
    created: 5,
  };
  const snapshot = buildSnapshot({ ...demo, models: [model] }, { simulatorUrl });
  const built = snapshot.models.get('m');
  t.strictSame(
    built?.targets.map((each) => each.model),
    ['first', 'second', 'late'],
  );
  t.strictSame(
    built?.targets.map(({ firstTokenMs }) => firstTokenMs),
    [8, 3, 8],
  );
  t.equal(built?.targets[0]?.upstream, snapshot.upstreams.get('simulator'));
  t.match(built, { created: 5, price: { rates: { input: 1, output: 2 } } });
  t.ok(built?.protocols.has('chat'));
  t.end();
});

test('the simulator is reached at the port that it runs on, under /v1', (t) => {
  const config = demoConfig(1);
  t.ok(needsSimulator(config));
  const upstream = buildSnapshot(config, { simulatorUrl }).upstreams.get('simulator');
  t.match(upstream, {
    basePath: '/v1',
    origin: { host: '127.0.0.1', port: 4242, secure: false, serverName: null },
  });
  t.throws(() => buildSnapshot(config, { simulatorUrl: null }), /has no address/);
  t.end();
});

test('keys of the same groups share one map of models', (t) => {
  const demo = demoConfig(1);
  const keys = ['a', 'b', 'c'].map((id) => ({
    id,
    hash: id,
    groups: id === 'c' ? ['trial', 'default'] : ['default', 'trial'],
    expiresAt: null,
    limits: null,
    budget: null,
    mayRoute: false,
  }));
  const built = [...buildSnapshot({ ...demo, keys }, { simulatorUrl }).keys.values()];
  t.equal(new Set(built.map((key) => key.models)).size, 1);
  t.end();
});

test('keys that say the same of groups and limits share what they say', (t) => {
  const limits = { requestsPerMinute: 60, tokensPerMinute: null, concurrent: 5 };
  const keys = ['a', 'b', 'c'].map((id) => ({
    id,
    hash: id,
    groups: ['default'],
    expiresAt: null,
    limits: { ...limits, concurrent: id === 'c' ? 6 : 5 },
    budget: null,
    mayRoute: false,
  }));
  const { keyIds } = buildSnapshot({ ...demoConfig(1), keys }, { simulatorUrl });
  const [a, b, c] = ['a', 'b', 'c'].map((id) => keyIds.get(id));
  t.same(a?.limits, limits);
  t.equal(b?.limits, a?.limits);
  t.equal(b?.groups, a?.groups);
  t.equal(c?.groups, a?.groups);
  t.same(c?.limits, { ...limits, concurrent: 6 });
  t.end();
});

test('what a key may use is the union of its groups, sorted by name', (t) => {
  const names = fc.subarray(['b', 'a', 'A', 'c/1', 'é']);
  const groupModels = fc.array(names, { minLength: 1, maxLength: 3 });
  const [model] = demoConfig(1).models;
  if (model === undefined) throw new Error('the demo has models');
  fc.assert(
    fc.property(groupModels, (lists) => {
      const config: ResolvedConfig = {
        ...demoConfig(1),
        models: ['b', 'a', 'A', 'c/1', 'é'].map((name) => ({ ...model, name })),
        groups: lists.map((models, index) => ({
          name: `g${index}`,
          models,
          limits: null,
          budget: null,
          priceFactor: null,
          shareVideos: false,
        })),
        keys: [
          {
            id: 'k',
            hash: 'h',
            groups: lists.map((_, index) => `g${index}`),
            expiresAt: null,
            limits: null,
            budget: null,
            mayRoute: false,
          },
        ],
      };
      const key = buildSnapshot(config, { simulatorUrl }).keys.get('h');
      t.strictSame([...(key?.models.keys() ?? [])], [...new Set(lists.flat())].sort());
    }),
    { numRuns: 50 },
  );
  t.end();
});

test('an origin knows its address in each form', (t) => {
  t.match(createOrigin('https://api.example.com/v1', plain), {
    secure: true,
    host: 'api.example.com',
    port: 443,
    authority: 'api.example.com',
    serverName: 'api.example.com',
  });
  t.match(createOrigin('http://[::1]:8000', plain), {
    secure: false,
    host: '::1',
    port: 8000,
    authority: '[::1]:8000',
    serverName: null,
  });
  t.end();
});

test('two origins are the same exactly when one connection may serve both', (t) => {
  const base = createOrigin('https://a.example/v1', plain).identity;
  t.equal(createOrigin('https://a.example:443/other', plain).identity, base);
  t.equal(createOrigin('https://A.example', { ...plain, maxWaiting: 5 }).identity, base);
  const others = [
    createOrigin('http://a.example:443', plain),
    createOrigin('https://b.example', plain),
    createOrigin('https://a.example:444', plain),
    createOrigin('https://a.example', { ...plain, serverName: 'b.example' }),
    createOrigin('https://a.example', { ...plain, ca: 'x' }),
    createOrigin('https://a.example', { ...plain, ca: 'y' }),
    createOrigin('https://a.example', { ...plain, verify: false }),
    createOrigin('https://a.example', { ...plain, clientCertificate: { cert: 'x', key: 'x' } }),
    createOrigin('https://a.example', { ...plain, clientCertificate: { cert: 'y', key: 'x' } }),
    ...['http://x', 'https://x', 'http://y', 'http://x:81', 'http://u@x', 'http://u:p@x', 'http://u:q@x'].map(
      (url) => createOrigin('https://a.example', { ...plain, proxy: resolveProxy(url, null) }),
    ),
    createOrigin('https://a.example', { ...plain, proxy: resolveProxy('https://x', 'ca') }),
  ];
  t.equal(new Set([base, ...others.map((origin) => origin.identity)]).size, others.length + 1);
  t.end();
});

test('only names and addresses of this machine are loopback', (t) => {
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost']) t.ok(isLoopback(host), host);
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.example.com', 'localhost.example', '']) {
    t.notOk(isLoopback(host), host);
  }
  t.end();
});
