import { type Static, Type } from 'typebox';
import { protocols, upstreamKinds } from './types.js';

const closed = { additionalProperties: false } as const;
/** Setters of timers take 32 signed bits: beyond, a deadline would fire at once. */
const longestMs = 2_147_483_647;

const text = Type.String({ minLength: 1 });
const milliseconds = Type.Integer({ minimum: 1, maximum: longestMs });
const port = Type.Integer({ minimum: 0, maximum: 65_535 });
const positive = Type.Integer({ minimum: 1 });
const words = Type.Array(Type.String({ pattern: '^[a-z][a-z0-9-]*$', expected: 'a lower-case word' }));
/** What may stand in a header value: no control characters, so that nothing can end the line. */
const headerValue = { pattern: '^[\\t\\u0020-\\u007e\\u0080-\\u00ff]*$', expected: 'a valid header value' };

const listen = Type.Object(
  {
    host: Type.Optional(text),
    port: Type.Optional(port),
    tls: Type.Optional(Type.Object({ cert: text, key: text }, closed)),
    cors: Type.Optional(
      Type.Object(
        {
          origins: Type.Array(
            Type.String({
              pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^\\s/?#,]+)$',
              expected: 'an origin such as "https://app.example.com", or "*"',
            }),
            { minItems: 1 },
          ),
          maxAgeSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
        },
        closed,
      ),
    ),
    trustedProxies: Type.Optional(Type.Array(text)),
    publicUrl: Type.Optional(
      Type.String({ pattern: '^https?://[^\\s?#]+$', expected: 'an http(s) URL without a query' }),
    ),
  },
  closed,
);

const admin = Type.Object(
  { host: Type.Optional(text), port: Type.Optional(port), token: Type.String({ minLength: 16 }) },
  closed,
);

const store = Type.Object(
  {
    kind: Type.Enum(['embedded', 'redis']),
    path: Type.Optional(text),
    url: Type.Optional(text),
    cluster: Type.Optional(Type.Array(text, { minItems: 1 })),
    prefix: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9:_-]{1,64}$', expected: 'letters, digits, ":", "_" and "-"' }),
    ),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 10, maximum: 60_000 })),
    taskDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 365 })),
  },
  closed,
);

const stance = Type.Optional(Type.Enum(['open', 'closed']));
const outage = Type.Object({ budgets: stance, rates: stance }, closed);

const days = Type.Integer({ minimum: 1, maximum: 3650 });
const usage = Type.Object(
  { ledger: Type.Optional(Type.Boolean()), lineDays: Type.Optional(days), sumDays: Type.Optional(days) },
  closed,
);

const vendors = Type.Object(
  {
    vendorc: Type.Optional(words),
    vendorg: Type.Optional(words),
    vendork: Type.Optional(words),
    vendorj: Type.Optional(words),
  },
  closed,
);

const limits = Type.Object(
  {
    bodyBytes: Type.Optional(positive),
    uploadBytes: Type.Optional(positive),
    headerBytes: Type.Optional(Type.Integer({ minimum: 4096, maximum: 1_048_576 })),
    bufferedBytes: Type.Optional(positive),
  },
  closed,
);

const sockets = Type.Object(
  {
    messageBytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_073_741_824 })),
    waitingBytes: Type.Optional(positive),
    perKey: Type.Optional(positive),
    // What the server underneath can count to.
    idleMs: Type.Optional(Type.Integer({ minimum: 8000, maximum: 960_000 })),
    pingMs: Type.Optional(milliseconds),
    sessionMs: Type.Optional(milliseconds),
    responses: Type.Optional(Type.Boolean()),
    historyBytes: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  closed,
);

const timeouts = Type.Object(
  {
    bodyMs: Type.Optional(milliseconds),
    keepAliveMs: Type.Optional(Type.Integer({ minimum: 0, maximum: longestMs })),
    connectMs: Type.Optional(milliseconds),
    firstByteMs: Type.Optional(milliseconds),
    idleMs: Type.Optional(milliseconds),
    totalMs: Type.Optional(milliseconds),
    drainMs: Type.Optional(milliseconds),
    unreadyMs: Type.Optional(Type.Integer({ minimum: 0, maximum: longestMs })),
  },
  closed,
);

const upstream = Type.Object(
  {
    kind: Type.Enum(upstreamKinds),
    baseUrl: Type.Optional(text),
    apiKeys: Type.Optional(
      Type.Array(Type.String({ pattern: '^[\\u0021-\\u007e]+$', expected: 'a key without spaces' })),
    ),
    headers: Type.Optional(Type.Record(Type.String(), Type.String(headerValue))),
    tls: Type.Optional(
      Type.Object(
        { ca: Type.Optional(text), verify: Type.Optional(Type.Boolean()), serverName: Type.Optional(text) },
        closed,
      ),
    ),
    injectUsage: Type.Optional(Type.Boolean()),
    responsesSocket: Type.Optional(Type.Boolean()),
    fetchPrivate: Type.Optional(Type.Boolean()),
    maxConnections: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    maxWaiting: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000_000 })),
  },
  closed,
);

const translation = Type.Object(
  {
    maxTokens: Type.Optional(positive),
    maxTokensField: Type.Optional(Type.Enum(['max_completion_tokens', 'max_tokens'])),
    thinking: Type.Optional(Type.Enum(['budget', 'adaptive', 'levels'])),
    jsonSchema: Type.Optional(Type.Boolean()),
    hostedTools: Type.Optional(Type.Enum(['reject', 'drop'])),
  },
  closed,
);

const target = Type.Object(
  {
    upstream: text,
    model: Type.Optional(text),
    responses: Type.Optional(
      Type.Union([Type.Boolean(), Type.Literal('only')], { expected: 'true, false or "only"' }),
    ),
    images: Type.Optional(Type.Enum(['openai', 'dashscope'])),
    translation: Type.Optional(translation),
    priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  },
  closed,
);

const rateLimits = Type.Object(
  {
    requestsPerMinute: Type.Optional(positive),
    tokensPerMinute: Type.Optional(positive),
    concurrent: Type.Optional(positive),
  },
  closed,
);

const money = Type.Number({ minimum: 0 });

const routing = Type.Object(
  {
    failures: Type.Optional(positive),
    failureRate: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
    minimumCalls: Type.Optional(positive),
    windowMs: Type.Optional(milliseconds),
    openMs: Type.Optional(milliseconds),
    maxOpenMs: Type.Optional(milliseconds),
    affinity: Type.Optional(Type.Boolean()),
    loadFactor: Type.Optional(Type.Number({ minimum: 1, maximum: 100 })),
    retries: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  },
  closed,
);

const model = Type.Object(
  {
    protocols: Type.Array(Type.Enum(protocols), { minItems: 1 }),
    targets: Type.Array(target, { minItems: 1 }),
    price: Type.Optional(
      Type.Object(
        {
          input: Type.Optional(money),
          output: Type.Optional(money),
          cached: Type.Optional(money),
          cacheWritten: Type.Optional(money),
          perCall: Type.Optional(money),
          perSecond: Type.Optional(money),
        },
        closed,
      ),
    ),
    limits: Type.Optional(rateLimits),
    hedgeMs: Type.Optional(milliseconds),
  },
  closed,
);

const key = Type.Object(
  {
    id: text,
    hash: Type.String({
      pattern: '^sha256:[0-9a-fA-F]{64}$',
      expected: '"sha256:" and 64 hex digits (see: model-gateway key hash)',
    }),
    groups: Type.Array(text, { minItems: 1 }),
    limits: Type.Optional(rateLimits),
    mayRoute: Type.Optional(Type.Boolean()),
    budget: Type.Optional(
      Type.Object(
        { usd: Type.Number({ exclusiveMinimum: 0 }), per: Type.Enum(['day', 'week', 'month']) },
        closed,
      ),
    ),
    expiresAt: Type.Optional(text),
  },
  closed,
);

const group = Type.Object({ models: Type.Array(text), limits: Type.Optional(rateLimits) }, closed);

/** The config file's shape. What joins two places of it is checked in `check.ts`. */
export const configSchema = Type.Object(
  {
    listen: Type.Optional(listen),
    admin: Type.Optional(admin),
    workers: Type.Optional(Type.Integer({ minimum: 0, maximum: 1024 })),
    store: Type.Optional(store),
    outage: Type.Optional(outage),
    usage: Type.Optional(usage),
    vendors: Type.Optional(vendors),
    limits: Type.Optional(limits),
    timeouts: Type.Optional(timeouts),
    routing: Type.Optional(routing),
    sockets: Type.Optional(sockets),
    secret: Type.Optional(Type.String({ minLength: 32 })),
    defaultModels: Type.Optional(
      Type.Object(
        { rerank: Type.Optional(text), moderations: Type.Optional(text), realtime: Type.Optional(text) },
        closed,
      ),
    ),
    upstreams: Type.Record(Type.String(), upstream),
    models: Type.Record(Type.String(), model),
    groups: Type.Record(Type.String(), group),
    keys: Type.Array(key),
  },
  closed,
);

/** A config file after `${ENV}` interpolation, defaults not yet filled in. */
export type ConfigFile = Static<typeof configSchema>;
