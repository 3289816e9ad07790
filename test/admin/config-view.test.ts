import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { type ConfigDesk, configRoutes, configTexts, hiddenText } from '../../src/admin/config.js';
import { demoConfig } from '../../src/config/demo.js';
import { parseConfig } from '../../src/config/load.js';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { configSchema } from '../../src/config/schema.js';
import { fc } from '../support/seed.js';

const directory = fileURLToPath(new URL('../../../test/fixtures/tls/', import.meta.url));

const parse = (file: unknown, environment: Readonly<Record<string, string>> = {}): ResolvedConfig =>
  parseConfig(JSON.stringify(file), { environment, directory, created: 1 });

function desk(config: ResolvedConfig): ConfigDesk {
  return { path: '/config.json', generation: () => 3, running: () => config, check: async () => [] };
}

const shown = (config: ResolvedConfig): string =>
  JSON.stringify(JSON.parse([...configTexts(desk(config))].join('')).config);

/** One for each place of `fullConfig`, each of a form that its place takes. */
interface Secrets {
  readonly token: string;
  readonly secret: string;
  readonly apiKeys: readonly string[];
  readonly header: string;
  readonly ruleHeader: string;
  readonly user: string;
  readonly password: string;
  readonly publicUser: string;
  readonly hash: string;
}

const plainSecrets: Secrets = {
  token: 'token-of-the-operators',
  secret: 'a-secret-of-the-gateway-that-is-long-enough',
  apiKeys: ['sk-upstream-1', 'sk-upstream-2'],
  header: 'org-of-the-owner',
  ruleHeader: 'title-of-the-owner',
  user: 'user-of-the-store',
  password: 'password-of-the-store',
  publicUser: 'visitor',
  hash: `sha256:${'0123456789abcdef'.repeat(4)}`,
};

function fullRules({ ruleHeader }: Secrets) {
  return {
    drop: ['seed'],
    keep: ['n'],
    set: { service_tier: 'flex', metadata: { a: [1] } },
    rename: { user: 'safety_identifier' },
    clamp: { temperature: { min: 0, max: 1 } },
    efforts: { xhigh: 'high' },
    roles: { developer: 'user' },
    sampling: true,
    thinking: 'enable_thinking',
    fillReasoning: true,
    headers: { pass: ['x-app'], set: { 'X-Title': ruleHeader }, drop: ['user-agent'] },
    betas: { add: ['a-1'], drop: ['b-1'] },
  };
}

const rates = {
  input: 1,
  output: 2,
  cached: 3,
  cacheWritten: 4,
  cacheWrittenHour: 5,
  audioInput: 6,
  audioOutput: 7,
  cachedAudio: 8,
  imageInput: 9,
  videoInput: 22,
  imageOutput: 10,
  cachedImage: 11,
  reasoning: 12,
  characters: 23,
  perSearch: 13,
  perCall: 14,
  perSecond: 15,
};
const price = {
  ...rates,
  images: [{ size: '1024x1024', quality: 'high', usd: 0.2 }],
  seconds: [{ resolution: '1080p', usd: 0.5 }],
  steps: [{ aboveInput: 200_000, ...rates, input: 2 }],
  tiers: {
    flex: 0.5,
    priority: { ...rates, input: 3, steps: [{ aboveInput: 200_000, ...rates, input: 4 }] },
    fast: 2,
    ultrafast: 6,
    batch: 0.5,
    scale: 0,
  },
  geos: { us: 1.1 },
};

/** A file that says everything that a file can say, nothing of it as it is without being said. */
function fullConfig(secrets: Secrets) {
  const limits = { requestsPerMinute: 11, tokensPerMinute: 12, concurrent: 13 };
  const rules = fullRules(secrets);
  const storeUrl = `postgres://${secrets.user}:${secrets.password}@db.example.com:7000/gate?sslmode=require`;
  const proxy = `https://${secrets.user}:${secrets.password}@proxy.example.com:3128`;
  return {
    listen: {
      host: '127.0.0.2',
      port: 8443,
      tls: { cert: 'localhost.pem', key: 'localhost.key' },
      cors: { origins: ['https://app.example.com'], maxAgeSeconds: 60 },
      trustedProxies: ['10.0.0.0/8', '::1'],
      publicUrl: `https://${secrets.publicUser}@gateway.example.com/ai/`,
    },
    admin: {
      host: '127.0.0.3',
      port: 9999,
      token: secrets.token,
      readToken: `read-${secrets.token}`,
      metricsToken: `metrics-${secrets.token}`,
    },
    workers: 3,
    store: {
      kind: 'postgres',
      url: storeUrl,
      schema: 'other',
      timeoutMs: 500,
      taskDays: 3,
    },
    outage: { budgets: 'open', rates: 'closed' },
    usage: { ledger: false, lineDays: 2, sumDays: 3 },
    videos: { folder: '/var/videos', days: 3, bytes: 2_000_000, fileBytes: 1_000_000 },
    unpriced: 'free',
    conversations: 'off',
    vendors: { vendorc: ['c'], vendorg: ['g'], vendork: ['k'], vendorj: ['j'] },
    limits: {
      bodyBytes: 1001,
      bodyValues: 1005,
      uploadBytes: 1002,
      headerBytes: 5000,
      bufferedBytes: 2003,
      bufferedBytesPerKey: 1003,
      leastBodyRate: 1004,
    },
    timeouts: {
      bodyMs: 1,
      bodyGraceMs: 9,
      keepAliveMs: 2,
      connectMs: 3,
      firstByteMs: 4,
      idleMs: 5,
      totalMs: 6,
      drainMs: 7,
      unreadyMs: 8,
      orphanMs: 9,
    },
    routing: {
      failures: 1,
      failureRate: 0.25,
      minimumCalls: 2,
      windowMs: 3,
      openMs: 4,
      maxOpenMs: 5,
      affinity: false,
      loadFactor: 6,
      retries: 7,
    },
    sockets: {
      heldBytes: 536870912,
      heldBytesPerKey: 100000000,
      messageBytes: 2048,
      waitingBytes: 1,
      perKey: 2,
      idleMs: 9000,
      pingMs: 3,
      sessionMs: 4,
      responses: false,
      historyBytes: 5,
    },
    fetch: {
      ports: [443, '8000-8999'],
      denyNetworks: ['192.0.2.0/24', 'fd00::/8'],
      denyHosts: ['a.example', '*.b.example'],
      proxy: proxy.replace('proxy.example.com', '[fd00::1]'),
      proxyCa: 'ca.pem',
    },
    secret: secrets.secret,
    defaultModels: { rerank: 'm', moderations: 'm', realtime: 'm', video: 'm' },
    upstreams: {
      main: {
        kind: 'chat',
        baseUrl: 'https://api.example.com/v1',
        apiKeys: secrets.apiKeys,
        keyHeader: 'api-key',
        query: { 'api-version': '2024-10-21' },
        headers: { 'x-organization': secrets.header },
        forwardHeaders: ['openai-project'],
        returnHeaders: ['x-served-by'],
        preset: 'vllm',
        rules,
        tls: {
          ca: 'ca.pem',
          cert: 'client.pem',
          key: 'client.key',
          verify: false,
          serverName: 'inner.example.com',
        },
        proxy,
        proxyCa: 'ca.pem',
        injectUsage: false,
        responsesSocket: true,
        onLeave: 'cancel',
        allowMembers: ['provider'],
        fetchPrivate: true,
        maxConnections: 9,
        maxWaiting: 10,
      },
    },
    models: {
      m: {
        protocols: ['chat', 'responses', 'messages', 'rerank', 'moderations', 'realtime'],
        targets: ['adaptive', 'levels', 'budget'].map((thinking, index) => ({
          upstream: 'main',
          model: `other-${index}`,
          responses: true,
          images: 'dashscope',
          translation: {
            maxTokens: 5,
            maxTokensField: 'max_tokens',
            thinking,
            jsonSchema: false,
            customTools: true,
            topK: true,
            promptCaching: false,
            unsignedThinking: true,
            systemMessages: true,
            preservedThinking: true,
            forcedCalls: false,
            encryptedReasoning: true,
            cacheBreakpoints: true,
            threads: false,
            search: false,
            hostedTools: 'reject',
          },
          preset: 'deepseek',
          rules,
          priority: index,
          weight: 2,
          firstTokenMs: 66,
          cost: { ...price, input: 0.5 },
        })),
        price,
        limits,
        budget: { usd: 7, per: 'day' },
        inputTokens: 100,
        outputTokens: 10,
        firstTokenMs: 65,
        hedgeMs: 77,
      },
    },
    groups: {
      all: {
        models: ['*'],
        limits,
        budget: { usd: 8, per: 'month' },
        priceFactor: 1.5,
        shareVideos: true,
      },
    },
    keys: [
      {
        id: 'team',
        hash: secrets.hash,
        groups: ['all'],
        limits: { requestsPerMinute: 14 },
        mayRoute: true,
        budget: { usd: 5, per: 'week' },
        expiresAt: '2039-01-01T00:00:00.000Z',
      },
    ],
  };
}

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
}

/** Paths of the schema that the value does not name, with `*` for names and places in lists. */
function unnamed(node: SchemaNode, value: unknown, path = ''): string[] {
  if (value === undefined) return [path];
  if (node.items !== undefined) {
    return (value as unknown[]).flatMap((item) => unnamed(node.items ?? {}, item, `${path}.*`));
  }
  const [each] = Object.values(node.patternProperties ?? {});
  if (each !== undefined) {
    return Object.values(value as object).flatMap((item) => unnamed(each, item, `${path}.*`));
  }
  return Object.entries(node.properties ?? {}).flatMap(([name, property]) =>
    unnamed(property, Reflect.get(value as object, name), path === '' ? name : `${path}.${name}`),
  );
}

test('the view of a config is its file: whoever puts the secrets back has the same config', async (t) => {
  const missing = ['store.path', 'keys.*.limits.tokensPerMinute', 'keys.*.limits.concurrent'];
  const node = configSchema as unknown as SchemaNode;
  t.strictSame(unnamed(node, fullConfig(plainSecrets)), missing);
  const file = fullConfig(plainSecrets);
  const config = parse(file);
  const view = JSON.parse(shown(config));
  t.match(view, {
    admin: { token: hiddenText, readToken: hiddenText, metricsToken: hiddenText },
    secret: hiddenText,
    listen: { publicUrl: `https://${hiddenText}@gateway.example.com/ai` },
    store: { url: `postgres://${hiddenText}@db.example.com:7000/gate?sslmode=require` },
    upstreams: {
      main: {
        apiKeys: [hiddenText, hiddenText],
        headers: { 'x-organization': hiddenText },
        preset: 'vllm',
        rules: { drop: ['seed'], headers: { pass: ['x-app'], set: { 'X-Title': hiddenText } } },
        tls: { ca: hiddenText, cert: hiddenText, key: hiddenText },
        proxy: `https://${hiddenText}@proxy.example.com:3128`,
        proxyCa: hiddenText,
      },
    },
    fetch: { proxy: `https://${hiddenText}@[fd00::1]:3128`, proxyCa: hiddenText },
    keys: [{ hash: hiddenText }],
  });
  view.admin = file.admin;
  view.secret = file.secret;
  view.listen.publicUrl = file.listen.publicUrl;
  view.store = file.store;
  Object.assign(view.upstreams.main, {
    apiKeys: plainSecrets.apiKeys,
    headers: file.upstreams.main.headers,
    rules: file.upstreams.main.rules,
  });
  for (const target of view.models.m.targets) target.rules = fullRules(plainSecrets);
  Object.assign(view.upstreams.main.tls, { ca: 'ca.pem', cert: 'client.pem', key: 'client.key' });
  for (const [shownOf, written] of [
    [view.upstreams.main, file.upstreams.main],
    [view.fetch, file.fetch],
  ])
    Object.assign(shownOf, { proxy: written.proxy, proxyCa: written.proxyCa });
  view.keys[0].hash = plainSecrets.hash;
  t.strictSame(parse(view), config);
});

test('a small config is shown with its defaults, and so is the demo', async (t) => {
  const view = JSON.parse(
    shown(
      parse({
        upstreams: { local: { kind: 'simulator' } },
        models: { __proto__x: { protocols: ['chat'], targets: [{ upstream: 'local' }] } },
        groups: {},
        keys: [],
      }),
    ),
  );
  t.match(view, {
    listen: { host: '127.0.0.1', port: 8080 },
    store: { kind: 'embedded', path: `${directory}data`, taskDays: 7 },
    timeouts: { connectMs: 3000 },
    conversations: { hours: 24, recordBytes: 8_388_608 },
    models: { __proto__x: { targets: [{ model: '__proto__x', weight: 1 }] } },
  });
  for (const absent of ['admin', 'secret']) t.notOk(absent in view, absent);
  t.notOk('tls' in view.upstreams.local);
  const demo = demoConfig(1);
  t.notOk(shown(demo).includes(demo.secret.text));
  t.notOk(shown(demo).includes(demo.keys[0]?.hash ?? ''));
  t.match(JSON.parse(shown(demo)), { keys: [{ id: 'demo', hash: hiddenText }] });
});

test('no secret of a config is ever shown, written in the file or taken from the environment', (t) => {
  const word = (least: number) => fc.stringMatching(new RegExp(`^[a-zA-Z][a-zA-Z0-9]{${least},40}$`));
  const secrets = fc.record({
    token: word(16),
    secret: word(32),
    apiKeys: fc.array(word(12), { minLength: 1, maxLength: 3 }),
    header: word(12),
    ruleHeader: word(12),
    user: word(12),
    password: word(12),
    publicUser: word(12),
    hash: fc.stringMatching(/^[0-9a-fA-F]{64}$/).map((hex) => `sha256:${hex}`),
  });
  fc.assert(
    fc.property(secrets, fc.boolean(), (given, isFromEnvironment) => {
      const { apiKeys, ...rest } = given;
      const texts = [...apiKeys, ...Object.values(rest)];
      const environment = Object.fromEntries(texts.map((text, index) => [`SECRET_${index}`, text]));
      let written = JSON.stringify(fullConfig(given));
      if (isFromEnvironment) {
        for (const [index, text] of texts.entries())
          written = written.replaceAll(text, `\${SECRET_${index}}`);
      }
      const config = parseConfig(written, { environment, directory, created: 1 });
      const view = shown(config);
      const [upstream] = config.upstreams;
      const { cert = '', key = '' } = upstream?.tls.clientCertificate ?? {};
      const pems = [upstream?.tls.ca ?? '', cert, key].map((pem) => pem.split('\n')[1] ?? '');
      const basic = upstream?.proxy?.authorization?.split(' ')[1] ?? '';
      for (const text of [...texts, config.keys[0]?.hash ?? '', ...pems, basic]) {
        if (view.includes(text)) throw new Error(`${text} is shown`);
      }
    }),
  );
  t.end();
});

test('what is sent of a config is its view, written piece by piece', async (t) => {
  const config = demoConfig(1);
  const routes = configRoutes(desk(config));
  const answer = await routes.find(({ path }) => path === '/config')?.handle({} as never);
  let text = '';
  if (typeof answer?.body === 'object') for await (const piece of answer.body) text += String(piece);
  t.same(JSON.parse(text), { path: '/config.json', generation: 3, config: JSON.parse(shown(config)) });
});
