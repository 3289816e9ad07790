import { readFileSync } from 'node:fs';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

export const hash = `sha256:${'ab'.repeat(32)}`;
/** Stands where a secret may stand: no message may hold it. */
export const secret = 'sk-very-secret';

/** A change to the valid config of the tests (a path and the value put there), and what must be said of it. */
export interface BadConfig {
  readonly at: string;
  readonly value: unknown;
  readonly problems: string[];
}

export const badConfigs: readonly BadConfig[] = [
  {
    at: 'upstreams/main/baseURL',
    value: 'x',
    problems: ['upstreams.main.baseURL: unknown property; did you mean "baseUrl"?'],
  },
  { at: 'nonsense', value: 1, problems: ['nonsense: unknown property'] },
  ...(
    [
      ['http://127.0.0.1', 8080],
      ['127.0.0.1:80', 8080],
      ['[::1]', 8080],
      ['a host', 8080],
    ] as const
  ).flatMap(([host, port]) => {
    const problem = 'host: must be an address or the name of a host, without scheme and port';
    return [
      { at: 'listen', value: { host, port }, problems: [`listen.${problem}`] },
      {
        at: 'admin',
        value: { host, port, token: 'a token of sixteen' },
        problems: [`admin.${problem}`],
      },
    ];
  }),
  {
    at: 'admin',
    value: { host: '127.0.0.1', port: 9000, token: 'a token of sixteen' },
    problems: ['admin.port: is listen.port, where clients are served; name another'],
  },
  ...[
    ['https://x/v1/chat/completions', '/chat/completions'],
    ['https://x/v1/responses/', '/responses'],
    ['https://x/v1/messages', '/messages'],
    ['https://x/v1/embeddings', '/embeddings'],
    ['https://x/v1beta/models/m:generateContent', '/models/m:generateContent'],
  ].map(([value, operation]) => ({
    at: 'upstreams/main/baseUrl',
    value,
    problems: [
      `upstreams.main.baseUrl: is the URL of one operation; leave out "${operation}", which is added to it`,
    ],
  })),
  {
    at: 'groups/trial',
    value: { models: [], limits: { rpm: 5 } },
    problems: [
      'groups.trial.limits.rpm: unknown property; there are requestsPerMinute, tokensPerMinute, concurrent',
    ],
  },
  { at: 'keys', value: undefined, problems: ['keys: is required'] },
  { at: 'listen/port', value: '9000', problems: ['listen.port: must be an integer, without quotes'] },
  {
    at: 'listen/trustedProxies',
    value: ['10.0.0.0/8', '10.0.0.0/33', '::1', 'fd00::/8', 'proxy.example.com', 'fe80::1%eth0'],
    problems: [1, 4, 5].map(
      (index) =>
        `listen.trustedProxies[${index}]: must be an address or a network such as "10.0.0.0/8" or "fd00::/8"`,
    ),
  },
  { at: 'listen/port', value: 65536, problems: ['listen.port: must be <= 65535'] },
  {
    at: 'upstreams/main/kind',
    value: 'openai',
    problems: [
      'upstreams.main.kind: must be one of chat, messages, generateContent, vendork, vendorj, generic, simulator',
    ],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: undefined,
    problems: ['upstreams.main.baseUrl: is required for every kind but simulator'],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: 'ftp://x',
    problems: ['upstreams.main.baseUrl: must be an http:// or https:// URL'],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: 'https://x:99999',
    problems: ['upstreams.main.baseUrl: is not a valid URL (ERR_INVALID_URL)'],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: `https://u:${secret}@x`,
    problems: ['upstreams.main.baseUrl: may not hold credentials; put them into apiKeys'],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: `https://x/?key=${secret}`,
    problems: ['upstreams.main.baseUrl: may not hold a query'],
  },
  {
    at: 'upstreams/main/baseUrl',
    value: 'https://x/#a',
    problems: ['upstreams.main.baseUrl: may not hold a fragment'],
  },
  {
    at: 'upstreams/main/query',
    value: {
      'api-version': '2024-10-21',
      'api-key': secret,
      key: secret,
      'Subscription-Key': secret,
      sig: secret,
    },
    problems: [
      'upstreams.main.query.api-key: may not be set here: it is called like a credential; put it into apiKeys',
      'upstreams.main.query.key: may not be set here: it is called like a credential; put it into apiKeys',
      'upstreams.main.query.Subscription-Key: may not be set here: it is called like a credential; put it into apiKeys',
      'upstreams.main.query.sig: may not be set here: it is called like a credential; put it into apiKeys',
    ],
  },
  {
    at: 'upstreams/main',
    value: { kind: 'chat', baseUrl: 'https://x/v1', keyHeader: 'api-key', headers: { 'Api-Key': secret } },
    problems: ['upstreams.main.headers.Api-Key: is where apiKeys are sent'],
  },
  {
    at: 'upstreams/main',
    value: {
      kind: 'chat',
      baseUrl: 'https://x/v1',
      keyHeader: 'api-key',
      rules: { headers: { set: { 'Api-Key': secret } } },
    },
    problems: ['upstreams.main.rules.headers.set.Api-Key: may not be set here: apiKeys are sent there'],
  },
  {
    at: 'upstreams/main/apiKeys',
    value: [''],
    problems: ['upstreams.main.apiKeys[0]: must not be empty'],
  },
  {
    at: 'upstreams/main/apiKeys',
    value: [`${secret}\r\nx: y`],
    problems: ['upstreams.main.apiKeys[0]: must be a key without spaces'],
  },
  {
    at: 'upstreams/main/headers',
    value: { 'x-a': `1\r\n${secret}` },
    problems: ['upstreams.main.headers.x-a: must be a valid header value'],
  },
  {
    at: 'upstreams/main/headers',
    value: { 'x a': '1' },
    problems: ['upstreams.main.headers["x a"]: is not a valid header name'],
  },
  {
    at: 'upstreams/main/headers',
    value: { 'Content-Length': '1' },
    problems: [
      'upstreams.main.headers.Content-Length: may not be set here: it frames the message, which the gateway does',
    ],
  },
  {
    at: 'upstreams/main/headers',
    value: { connection: 'close' },
    problems: [
      'upstreams.main.headers.connection: may not be set here: it belongs to one connection, which the gateway manages',
    ],
  },
  {
    at: 'upstreams/main/headers',
    value: { host: 'x' },
    problems: ['upstreams.main.headers.host: may not be set here: the gateway sets it for each request'],
  },
  {
    at: 'upstreams/main/headers',
    value: { Authorization: secret },
    problems: [
      'upstreams.main.headers.Authorization: may not be set here: it carries a credential; put it into apiKeys',
    ],
  },
  {
    at: 'upstreams/main/headers',
    value: { 'x-a': '1', 'X-A': '2' },
    problems: ['upstreams.main.headers.X-A: is given twice in different cases'],
  },
  {
    at: 'upstreams/main/forwardHeaders',
    value: ['Authorization', 'connection', 'content-length', 'x-gateway-target', 'x-auth-user', 'a b'],
    problems: [
      'upstreams.main.forwardHeaders[0]: may not be passed: it carries a credential',
      'upstreams.main.forwardHeaders[1]: may not be passed: it belongs to one connection, which the gateway manages',
      'upstreams.main.forwardHeaders[2]: may not be passed: it frames the message, which the gateway does',
      'upstreams.main.forwardHeaders[3]: may not be passed: it is between the client and the gateway',
      'upstreams.main.forwardHeaders[4]: may not be passed: it is called like a credential',
      'upstreams.main.forwardHeaders[5]: is not a valid header name',
    ],
  },
  {
    at: 'upstreams/main/returnHeaders',
    value: [
      'Set-Cookie',
      'keep-alive',
      'Transfer-Encoding',
      'x-gateway-path',
      'access-control-allow-origin',
    ].concat('x-ratelimit-limit-requests', 'x-amz-security-token', 'a:b'),
    problems: [
      'upstreams.main.returnHeaders[0]: may not be handed on: it is called like a credential',
      'upstreams.main.returnHeaders[1]: may not be handed on: it belongs to one connection, which the gateway manages',
      'upstreams.main.returnHeaders[2]: may not be handed on: it frames the message, which the gateway does',
      'upstreams.main.returnHeaders[3]: may not be handed on: it is between the client and the gateway',
      'upstreams.main.returnHeaders[4]: may not be handed on: it is between the client and the gateway',
      'upstreams.main.returnHeaders[5]: may not be handed on: it is handed on anyway, where the gateway has no limits of its own to tell of',
      'upstreams.main.returnHeaders[6]: may not be handed on: it is called like a credential',
      'upstreams.main.returnHeaders[7]: is not a valid header name',
    ],
  },
  {
    at: 'upstreams/main/forwardHeaders',
    value: Array.from({ length: 65 }, (_, index) => `x-${index}`),
    problems: ['upstreams.main.forwardHeaders: must not have more than 64 items'],
  },
  {
    at: 'upstreams/main/tls',
    value: { ca: 'gone.pem' },
    problems: ['upstreams.main.tls.ca: the file cannot be read (ENOENT)'],
  },
  {
    at: 'upstreams/main/tls',
    value: { ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
    problems: ['upstreams.main.tls.ca: holds a certificate that cannot be parsed'],
  },
  {
    at: 'upstreams/main/tls',
    value: { cert: pem('client.pem'), key: pem('localhost.key') },
    problems: ['upstreams.main.tls.key: is not the key of the certificate in cert'],
  },
  {
    at: 'upstreams/main/tls',
    value: { cert: pem('client.pem') },
    problems: ['upstreams.main.tls.key: is required beside cert'],
  },
  {
    at: 'upstreams/main/tls',
    value: { key: pem('client.key') },
    problems: ['upstreams.main.tls.cert: is required beside key'],
  },
  {
    at: 'upstreams/main/tls',
    value: { cert: pem('client.key'), key: pem('client.pem') },
    problems: [
      'upstreams.main.tls.cert: holds no PEM certificate',
      'upstreams.main.tls.key: holds no PEM private key',
    ],
  },
  {
    at: 'upstreams/main/tls',
    value: { cert: 'gone.pem', key: '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----' },
    problems: [
      'upstreams.main.tls.cert: the file cannot be read (ENOENT)',
      'upstreams.main.tls.key: holds a private key that cannot be read, or only with a passphrase',
    ],
  },
  ...[
    [`socks5://u:${secret}@x`, 'must be an http:// or https:// URL'],
    [`${secret}.example:3128`, 'must be an http:// or https:// URL'],
    [
      `http://u:${secret}%@x`,
      'is not a valid URL; write what is no letter or digit of a password as "%" and two hex digits',
    ],
    [
      `http://u:${secret}@x:99999`,
      'is not a valid URL; write what is no letter or digit of a password as "%" and two hex digits',
    ],
    [`http://u:${secret}@x/path`, 'may have no path'],
    [`http://u:${secret}@x/?a`, 'may not hold a query'],
    [`http://u:${secret}@x/#a`, 'may not hold a fragment'],
    [`http://u%3Av:${secret}@x`, 'may have no colon in its user name'],
  ].flatMap(([value, problem]) => [
    { at: 'upstreams/main/proxy', value, problems: [`upstreams.main.proxy: ${problem}`] },
    { at: 'fetch', value: { proxy: value }, problems: [`fetch.proxy: ${problem}`] },
  ]),
  {
    at: 'upstreams/main/proxyCa',
    value: pem('ca.pem'),
    problems: ['upstreams.main.proxyCa: needs an https proxy'],
  },
  {
    at: 'fetch',
    value: { proxy: 'https://x', proxyCa: 'gone.pem' },
    problems: ['fetch.proxyCa: the file cannot be read (ENOENT)'],
  },
  {
    at: 'upstreams/local/proxy',
    value: 'http://x',
    problems: ['upstreams.local.proxy: the simulator is built in and takes none'],
  },
  {
    at: 'upstreams/main',
    value: { kind: 'chat', baseUrl: 'http://x', tls: {} },
    problems: ['upstreams.main.tls: needs an https baseUrl'],
  },
  {
    at: 'upstreams/local/baseUrl',
    value: 'http://x',
    problems: ['upstreams.local.baseUrl: the simulator is built in and takes none'],
  },
  {
    at: 'upstreams/a\nb',
    value: { kind: 'simulator' },
    problems: ['upstreams["a\\nb"]: a name has 1 to 256 characters and no control characters'],
  },
  {
    at: 'models/*',
    value: { protocols: ['chat'], targets: [{ upstream: 'main' }] },
    problems: ['models["*"]: "*" means every model and cannot be the name of one'],
  },
  {
    at: 'models/gpt-x/targets/0/upstream',
    value: 'mian',
    problems: ['models.gpt-x.targets[0].upstream: no upstream is named "mian"; did you mean "main"?'],
  },
  {
    at: 'models/gpt-x/targets/0/upstream',
    value: 'constructor',
    problems: ['models.gpt-x.targets[0].upstream: no upstream is named "constructor"'],
  },
  { at: 'models/gpt-x/targets', value: [], problems: ['models.gpt-x.targets: must have at least one entry'] },
  {
    at: 'models/gpt-x/protocols',
    value: ['chat', 'chats'],
    problems: [
      'models.gpt-x.protocols[1]: must be one of chat, responses, messages, generateContent, completions, embeddings, rerank, moderations, audio, images, video, realtime',
    ],
  },
  {
    at: 'models/gpt-x',
    value: { protocols: ['chat', 'embeddings'], targets: [{ upstream: 'claude', responses: true }] },
    problems: [
      'models.gpt-x.targets[0].responses: only an upstream of kind chat can take responses calls as they come',
      'models.gpt-x.targets[0].upstream: an upstream of kind messages cannot serve embeddings (it serves messages, chat, responses, generateContent)',
    ],
  },
  {
    at: 'upstreams/main/preset',
    value: 'depseek',
    problems: ['upstreams.main.preset: no preset is named "depseek"; did you mean "deepseek"?'],
  },
  {
    at: 'models/gpt-x/targets/0/preset',
    value: 'claude-adaptive',
    problems: ["models.gpt-x.targets[0].preset: is for upstreams of kind messages, and this one's is chat"],
  },
  {
    at: 'upstreams/main/preset',
    value: 'constructor',
    problems: [
      'upstreams.main.preset: no preset is named "constructor"; there are openai-reasoning, openai-5.1, openai-5.6, claude-adaptive, claude-4.8, claude-5.5, gemini-3, deepseek, kimi, qwen, glm, vllm, ollama',
    ],
  },
  {
    at: 'models/gpt-x/targets/0/translation',
    value: { thinking: 'deep', maxTokens: 0, hostedTool: 'drop' },
    problems: [
      'models.gpt-x.targets[0].translation.hostedTool: unknown property; did you mean "hostedTools"?',
      'models.gpt-x.targets[0].translation.maxTokens: must be >= 1',
      'models.gpt-x.targets[0].translation.thinking: must be one of budget, adaptive, levels',
    ],
  },
  {
    at: 'fetch',
    value: {
      ports: [80, 0, 70_000, '8000-8999', '9-8', '0-5', '1-70000', 'http'],
      denyNetworks: ['10.0.0.0/8', '10.0.0.0/33', 'example.com', 'fe80::1%eth0'],
      denyHosts: ['*.example.com', '10.0.0.1', '0x7f.1', 'a.*.example', 'https://a.example', '[::1]'],
      port: 80,
    },
    problems: [
      'fetch.port: unknown property; did you mean "ports"?',
      ...[1, 2, 7].map((i) => `fetch.ports[${i}]: must be a port or a range such as "8000-8999"`),
      ...[4, 5, 6].map(
        (i) => `fetch.ports[${i}]: must go from a port to one that is not lower, both from 1 to 65535`,
      ),
      ...[1, 2, 3].map(
        (i) => `fetch.denyNetworks[${i}]: must be an address or a network such as "10.0.0.0/8" or "fd00::/8"`,
      ),
      ...[1, 2, 3, 4, 5].map(
        (i) =>
          `fetch.denyHosts[${i}]: must be a name such as "files.example.com", or "*.example.com" for all below it; addresses go into denyNetworks`,
      ),
    ],
  },
  {
    at: 'outage',
    value: { rates: 'ajar', budgets: true, rate: 'open' },
    problems: [
      'outage.rate: unknown property; did you mean "rates"?',
      'outage.budgets: must be one of open, closed',
      'outage.rates: must be one of open, closed',
    ],
  },
  { at: 'store', value: { kind: 'memory' }, problems: ['store.kind: must be one of embedded, postgres'] },
  {
    at: 'store',
    value: { kind: 'redis', url: 'redis://a' },
    problems: [
      'store.kind: must be one of embedded, postgres',
      'store: Redis is no kind any more: use postgres, and move what there is with "model-gateway store export --redis URL" and "model-gateway store import"',
    ],
  },
  {
    at: 'store',
    value: { kind: 'embedded', url: 'postgres://x', timeoutMs: 5, taskDays: 366 },
    problems: [
      'store.timeoutMs: must be >= 10',
      'store.taskDays: must be <= 365',
      'store.url: only a store of kind postgres has it',
    ],
  },
  {
    at: 'store',
    value: { kind: 'postgres', path: './data', schema: 'A b' },
    problems: [
      'store.schema: must be small letters, digits and "_"',
      'store.path: only a store of kind embedded has it',
      'store.url: is required',
    ],
  },
  {
    at: 'store',
    value: { kind: 'postgres', url: `http://:${secret}@x` },
    problems: ['store.url: must be a postgres:// URL'],
  },
  {
    at: 'admin',
    value: { token: `${secret}-of-all`, readToken: `${secret}-of-all`, metricsToken: 'short' },
    problems: [
      'admin.metricsToken: must not have fewer than 16 characters',
      'admin.readToken: is the same as admin.token',
    ],
  },
  {
    at: 'admin',
    value: {
      token: `${secret}-of-all\n`,
      readToken: ` ${secret}-to-read`,
      metricsToken: `${secret}\nmetrics`,
    },
    problems: ['token', 'readToken', 'metricsToken'].map(
      (name) =>
        `admin.${name}: must be characters that a header can carry, without spaces or line ends before or after them`,
    ),
  },
  { at: 'admin', value: { token: '' }, problems: ['admin.token: must not have fewer than 16 characters'] },
  {
    at: 'videos',
    value: { folder: '/var/videos', bytes: 1_048_576, days: 0 },
    problems: [
      'videos.days: must be >= 1',
      'videos.fileBytes: must be at most bytes, which all videos share',
    ],
  },
  { at: 'videos', value: { days: 3 }, problems: ['videos.folder: is required'] },
  { at: 'secret', value: 'short', problems: ['secret: must not have fewer than 32 characters'] },
  {
    at: 'models/gpt-4.1',
    value: { protocols: ['video'], targets: [{ upstream: 'main', weight: 0 }] },
    problems: ['models["gpt-4.1"].targets[0].weight: must be >= 1'],
  },
  {
    at: 'groups/trial/models',
    value: ['gpt-y'],
    problems: ['groups.trial.models[0]: no model is named "gpt-y"; did you mean "gpt-x"?'],
  },
  {
    at: 'keys/0/groups',
    value: ['default', 'trail'],
    problems: ['keys[0].groups[1]: no group is named "trail"; did you mean "trial"?'],
  },
  {
    at: 'keys/0/hash',
    value: secret,
    problems: ['keys[0].hash: must be "sha256:" and 64 hex digits (see: model-gateway key hash)'],
  },
  {
    at: 'keys/0/expiresAt',
    value: 'tomorrow',
    problems: ['keys[0].expiresAt: must be a date and time such as 2027-01-01T00:00:00Z'],
  },
  {
    at: 'keys/0/expiresAt',
    value: '2027-02-30T00:00:00Z',
    problems: ['keys[0].expiresAt: must be a date and time such as 2027-01-01T00:00:00Z'],
  },
  {
    at: 'keys/1',
    value: { id: 'a', hash: hash.replaceAll('ab', 'AB'), groups: ['trial'] },
    problems: ['keys[1].id: is the same as keys[0].id', 'keys[1].hash: is the same as keys[0].hash'],
  },
  {
    at: 'limits',
    value: { bodyBytes: 100, bufferedBytes: 50 },
    problems: ['limits.bufferedBytes: must be at least bodyBytes, or the largest body can never be held'],
  },
  {
    at: 'limits',
    value: { bodyBytes: 100, bufferedBytesPerKey: 50 },
    problems: [
      'limits.bufferedBytesPerKey: must be at least bodyBytes, or the largest body can never be held',
    ],
  },
  {
    at: 'limits',
    value: { bodyBytes: 100, bufferedBytes: 1000, bufferedBytesPerKey: 1001 },
    problems: ['limits.bufferedBytesPerKey: must be at most bufferedBytes, which all keys together may hold'],
  },
  {
    at: 'limits',
    value: { bufferedBytesPerKey: 0, leastBodyRate: -1 },
    problems: ['limits.bufferedBytesPerKey: must be >= 1', 'limits.leastBodyRate: must be >= 0'],
  },
  { at: 'timeouts', value: { bodyGraceMs: 0 }, problems: ['timeouts.bodyGraceMs: must be >= 1'] },
  {
    at: 'sockets',
    value: { messageBytes: 2048, heldBytes: 1024 },
    problems: ['sockets.heldBytes: must be at least messageBytes, or the largest message can never be held'],
  },
  {
    at: 'sockets',
    value: { messageBytes: 2048, heldBytesPerKey: 1024 },
    problems: [
      'sockets.heldBytesPerKey: must be at least messageBytes, or the largest message can never be held',
    ],
  },
  {
    at: 'sockets',
    value: { messageBytes: 2048, heldBytes: 4096, heldBytesPerKey: 8192 },
    problems: ['sockets.heldBytesPerKey: must be at most heldBytes, which all keys together may hold'],
  },
  { at: 'limits', value: { headerBytes: 100 }, problems: ['limits.headerBytes: must be >= 4096'] },
  {
    at: 'timeouts',
    value: { connectMs: 0, totalMs: 3_000_000_000 },
    problems: ['timeouts.connectMs: must be >= 1', 'timeouts.totalMs: must be <= 2147483647'],
  },
  {
    at: 'vendors',
    value: { vendork: ['jimeng'] },
    problems: ['vendors: a word of vendorj is used by vendork'],
  },
  {
    at: 'vendors',
    value: { vendork: ['v1'], vendorc: ['A b'] },
    problems: [
      'vendors.vendorc[0]: must be a lower-case word',
      'vendors.vendork[0]: a word of vendork is used by the gateway itself',
    ],
  },
  {
    at: 'vendors',
    value: { vendork: ['openai'], vendorj: ['v1beta1'] },
    problems: [
      'vendors.vendork[0]: a word of vendork is used by the gateway itself',
      'vendors.vendorj[0]: a word of vendorj is used by the gateway itself',
    ],
  },
  {
    at: 'listen/tls',
    value: { cert: 'gone.pem', key: 'load.test.js' },
    problems: ['listen.tls.cert: the file cannot be read (ENOENT)'],
  },
  {
    at: 'listen/tls',
    value: { cert: 'load.test.js', key: 'load.test.js' },
    problems: [
      'listen.tls: the certificate and the key cannot be used together (ERR_OSSL_PEM_NO_START_LINE): one of the files has no PEM of its kind',
    ],
  },
  {
    at: 'defaultModels',
    value: { rerank: 'none-such' },
    problems: ['defaultModels.rerank: no model is named "none-such"; there is gpt-x'],
  },
];
