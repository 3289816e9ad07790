import { type Static, Type } from 'typebox';
import { steeringMembers } from '../wire/routed-members.js';
import { hostForm } from './host.js';
import { price } from './price-schema.js';
import { rules } from './rules-schema.js';
import { closedObject, described, headerValue, optional } from './setting.js';
import { keyHeaders, protocols, upstreamKinds } from './words.js';

/* What the gateway keeps of finished calls. */

const days = Type.Integer({ minimum: 1, maximum: 3650 });
const usage = closedObject({
  ledger: optional('Write a ledger line for each finished call to the store.', Type.Boolean()),
  lineDays: optional('How long ledger lines are kept.', days),
  sumDays: optional('How long daily sums are kept.', days),
});

const videos = closedObject({
  folder: Type.String({
    minLength: 1,
    description: 'Folder in which to keep the videos of finished tasks. Without it they are not kept.',
  }),
  days: optional('How long a video is kept, from the creation of its task.', days),
  bytes: optional(
    'Limit for all videos in the folder. The oldest are deleted for new ones.',
    Type.Integer({ minimum: 1_048_576 }),
  ),
  fileBytes: optional('Limit for one video. A larger one is not kept.', Type.Integer({ minimum: 1 })),
});

const keptBytes = Type.Integer({ minimum: 4096, maximum: 2 ** 37 });
const conversations = Type.Union(
  [
    Type.Literal('off'),
    closedObject({
      hours: optional('How long a turn is kept.', Type.Integer({ minimum: 1, maximum: 8760 })),
      keyBytes: optional('Limit for the turns of one key. The oldest are deleted for new ones.', keptBytes),
      bytes: optional('Limit for the turns of all keys.', keptBytes),
      recordBytes: optional('Limit for one turn. A larger one is not kept.', keptBytes),
    }),
  ],
  {
    expected: '"off" or an object',
    description:
      'How the turns of translated calls are kept, so that clients can continue from them by id: see [Conversations](conversations.md). `"off"` keeps nothing.',
  },
);

/** Longest timer delay: 32 signed bits. With a longer one, a timer fires immediately. */
const longestMs = 2_147_483_647;

const text = Type.String({ minLength: 1 });
const milliseconds = Type.Integer({ minimum: 1, maximum: longestMs });
const port = Type.Integer({ minimum: 0, maximum: 65_535 });
const positive = Type.Integer({ minimum: 1 });
const words = Type.Array(Type.String({ pattern: '^[a-z][a-z0-9-]*$', expected: 'a lower-case word' }));

const host = Type.String(hostForm);

const listen = closedObject({
  host: optional('Address to listen on.', host),
  port: optional('Port to listen on; 0 picks a free one.', port),
  tls: Type.Optional(
    closedObject({
      cert: described(
        'PEM file of the certificate and its chain, which makes the listener speak HTTPS. Read again on every reload.',
        text,
      ),
      key: described('PEM file of the private key.', text),
    }),
  ),
  cors: Type.Optional(
    closedObject({
      origins: described(
        'Origins of pages that may call from a browser. `["*"]` allows all.',
        Type.Array(
          Type.String({
            pattern: '^(\\*|[a-z][a-z0-9+.-]*://(?:(?![/?#,])[!-~])+)$',
            expected: 'an origin such as "https://app.example.com", or "*"',
          }),
          { minItems: 1 },
        ),
      ),
      maxAgeSeconds: optional(
        'How long a browser may cache the response to a preflight.',
        Type.Integer({ minimum: 0, maximum: 86_400 }),
      ),
    }),
  ),
  trustedProxies: optional(
    'Addresses and networks (`["10.0.0.0/8", "fd00::/8"]`) whose `x-forwarded-*` headers are trusted; `[]` for none. If set, access log lines have a `client` field.',
    Type.Array(text),
  ),
  publicUrl: optional(
    "Base URL under which clients reach the gateway, for URLs in responses. Default: taken from the request's `host` header.",
    Type.String({ pattern: '^https?://[^\\s?#]+$', expected: 'an http(s) URL without a query' }),
  ),
});

/** What every client can send in a header, and no server cuts off at its ends. */
const adminToken = Type.String({
  minLength: 16,
  pattern: '^(?:[!-~\\u00a1-\\u00ff](?:[\\t -~\\u00a1-\\u00ff]*[!-~\\u00a1-\\u00ff])?)?$',
  expected: 'characters that a header can carry, without spaces or line ends before or after them',
});
const admin = closedObject({
  host: optional("Address of the operators' listener.", host),
  port: optional("Port of the operators' listener.", port),
  token: described('Token with which operators sign in.', adminToken),
  readToken: optional(
    'Read-only token for operators: any change is refused with 403, and the console shows no buttons for changes.',
    adminToken,
  ),
  metricsToken: optional('Token that is valid only for `GET /metrics`.', adminToken),
});

const store = closedObject({
  kind: described(
    '`embedded` is LMDB in a folder, and used where the file has no `store`; `postgres` is PostgreSQL, shared by several hosts.',
    Type.Enum(['embedded', 'postgres']),
  ),
  path: optional('Folder of the embedded store.', text),
  url: optional(
    '`postgres://user:password@host:port/database`, of kind `postgres`; several hosts have commas between them.',
    text,
  ),
  schema: optional(
    'Database schema of the tables.',
    Type.String({ pattern: '^[a-z_][a-z0-9_]{0,47}$', expected: 'small letters, digits and "_"' }),
  ),
  timeoutMs: optional(
    'Timeout for a response of PostgreSQL. A batch of ledger lines that timed out gets twice the time with each retry, up to eight times.',
    Type.Integer({ minimum: 10, maximum: 60_000 }),
  ),
  taskDays: optional('How long video tasks are kept.', Type.Integer({ minimum: 1, maximum: 365 })),
});

const stance = Type.Enum(['open', 'closed']);
const outage = closedObject({
  budgets: optional(
    'What happens while the store is unreachable to calls that need more of a budget than is reserved. `closed`: 503. `open`: they are served, and charged when the store is back.',
    stance,
  ),
  rates: optional(
    'What happens while a store of kind `postgres` is unreachable. `open`: each host applies the whole limits on its own. `closed`: each host uses up its share, then responds with 503. Also applies in a worker that the primary process does not answer in time.',
    stance,
  ),
});

const vendors = closedObject({
  vendorc: optional(
    'Real vendor names accepted in header names beside the neutral one: `anthropic-version` beside `vendorc-version`.',
    words,
  ),
  vendorg: optional('Likewise in header names: `x-goog-api-key` beside `x-vendorg-api-key`.', words),
  vendork: optional('Likewise in paths: `/kling/…` beside `/vendork/…`.', words),
  vendorj: optional('Likewise in paths: `/jimeng/` beside `/vendorj/`.', words),
});

const limits = closedObject({
  bodyBytes: optional('Largest request body, after decoding.', positive),
  bodyValues: optional(
    'Largest number of values in a JSON body. An array, an object and a member name count as four each. Beyond it: 400.',
    positive,
  ),
  uploadBytes: optional('Largest form that is relayed.', positive),
  headerBytes: optional('Largest request head.', Type.Integer({ minimum: 4096, maximum: 1_048_576 })),
  bufferedBytes: optional(
    'Bytes that one worker holds of request bodies, of downloaded files, of answers that it collects and of stream ends that clients have not read. Beyond it: 503. Counted as they arrive, not by `content-length`.',
    positive,
  ),
  bufferedBytesPerKey: optional(
    'Share of `bufferedBytes` that the calls of one key may hold. Beyond it: 503 for that key only. Default: a quarter of `bufferedBytes`, at least `bodyBytes`.',
    positive,
  ),
  leastBodyRate: optional(
    'Lowest rate of a body, in bytes a second. A slower request body is refused with 408, a slower download with 400. 0 turns it off.',
    Type.Integer({ minimum: 0, maximum: 1_073_741_824 }),
  ),
});

const sockets = closedObject({
  messageBytes: optional(
    'Largest WebSocket message, in either direction. A larger one from a client ends the connection at its head, without a close frame.',
    Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
  ),
  waitingBytes: optional(
    'Bytes that may wait for a slow realtime upstream, or for the response in progress, before more is refused.',
    positive,
  ),
  perKey: optional(
    'WebSockets that a key may have open at one worker. Beyond it: 429. Each may hold an unfinished message of up to `messageBytes` until the worker next checks.',
    positive,
  ),
  heldBytes: optional(
    'Memory that the WebSockets of a worker may hold: 16 KiB each, waiting bytes in both directions, conversations and unfinished messages. Beyond it: 503. The default is at least four times `messageBytes`.',
    positive,
  ),
  heldBytesPerKey: optional(
    'Share of `heldBytes` for one key. Beyond it: 429. Default: a quarter of `heldBytes`, at least `messageBytes`.',
    positive,
  ),
  // The range that uWebSockets.js supports.
  idleMs: optional(
    'A client that sends nothing, or does not finish a message, for this long and does not answer a ping is disconnected.',
    Type.Integer({ minimum: 8000, maximum: 960_000 }),
  ),
  pingMs: optional('How long an upstream may be silent before it is pinged.', milliseconds),
  sessionMs: optional('Longest duration of a session.', milliseconds),
  responses: optional('Serve responses over a WebSocket. With `false`: 426.', Type.Boolean()),
  historyBytes: optional(
    'Bytes of the conversation that are kept for such a socket.',
    Type.Integer({ minimum: 0 }),
  ),
});

const timeouts = closedObject({
  bodyMs: optional('Time for a request body to arrive.', milliseconds),
  bodyGraceMs: optional(
    'Interval over which the lowest rate of a body is measured. Only time in which the gateway reads it counts.',
    milliseconds,
  ),
  keepAliveMs: optional(
    'Silence on a stream after which a keep-alive is sent. 0 turns it off.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
  connectMs: optional('Time to connect to an upstream, including TLS.', milliseconds),
  firstByteMs: optional('Time from the request to the head of the response.', milliseconds),
  idleMs: optional(
    'Time between two reads of a response. Not counted while the client is the slower side.',
    milliseconds,
  ),
  totalMs: optional('Time for a whole response.', milliseconds),
  drainMs: optional('Time for responses to finish after SIGTERM.', milliseconds),
  unreadyMs: optional(
    'How long after SIGTERM requests are still served while `/ready` returns 503, so that load balancers notice.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
  orphanMs: optional(
    'How long workers continue to serve after the primary process has died, until the next one takes over. With 0 they only finish their responses.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
});

const headerName = Type.String({ minLength: 1, maxLength: 256 });

const upstream = closedObject({
  kind: described(
    'Protocol of the upstream. `chat` stands for everything OpenAI-compatible; `vendork`, `vendorj` and `generic` are video formats.',
    Type.Enum(upstreamKinds),
  ),
  baseUrl: optional(
    'Base URL with the version: `https://api.example.com/v1`. Without a path, `/v1` is used for `messages` and `/v1beta` for `generateContent`. Required except for the simulator.',
    text,
  ),
  apiKeys: optional(
    'API keys, sent as bearer, `x-api-key` or `x-goog-api-key` depending on the kind. The health of each is tracked separately.',
    Type.Array(Type.String({ pattern: '^[\\u0021-\\u007e]+$', expected: 'a key without spaces' })),
  ),
  keyHeader: optional(
    'Header for the API keys, if not the default of the kind: `api-key` for OpenAI models on Azure. With `authorization` they are sent as bearer.',
    Type.Enum(keyHeaders),
  ),
  query: optional(
    'Query parameters of every request to the upstream, such as `{"api-version": "2024-10-21"}`.',
    Type.Record(Type.String({ minLength: 1, maxLength: 256 }), text),
  ),
  headers: optional(
    'Headers added to every request. Values are printable ASCII.',
    Type.Record(Type.String(), Type.String(headerValue)),
  ),
  forwardHeaders: optional(
    'Additional headers of client requests to pass on. Same as `rules.headers.pass` of the upstream.',
    Type.Array(headerName, { maxItems: 64 }),
  ),
  returnHeaders: optional(
    'Additional headers of its responses to pass to the client.',
    Type.Array(headerName, { maxItems: 64 }),
  ),
  preset: optional(
    'Name of a preset: rules and translation settings for a vendor. See [Rules](rules.md).',
    text,
  ),
  rules: Type.Optional(rules),
  tls: Type.Optional(
    closedObject({
      ca: optional('Certificates of the trusted authority: a PEM file, or its text.', text),
      cert: optional(
        'Client certificate with its chain: a PEM file, or its text. Read again on every reload.',
        text,
      ),
      key: optional('Private key of `cert`, without a passphrase: a PEM file, or its text.', text),
      verify: optional('`false` for tests only.', Type.Boolean()),
      serverName: optional('Name in the certificate, if not the host of `baseUrl`.', text),
    }),
  ),
  proxy: optional(
    '`http://user:password@host:port` of a proxy through which all connections to it go, by CONNECT; `https://` for TLS to the proxy.',
    text,
  ),
  proxyCa: optional(
    "Certificates of the trusted authority for an `https://` proxy, instead of the system's: a PEM file, or its text.",
    text,
  ),
  injectUsage: optional('Request usage on streams even if the client did not.', Type.Boolean()),
  onLeave: optional(
    'What happens to a call whose client disconnects. `drain`: read on for its usage, for at most 10 s or 2,000 output tokens. `cancel`: end it immediately.',
    Type.Enum(['drain', 'cancel']),
  ),
  responsesSocket: optional('The upstream also accepts responses over a WebSocket.', Type.Boolean()),
  fetchPrivate: optional(
    'Allow fetching media for it from private addresses, on the ports of `fetch.ports`.',
    Type.Boolean(),
  ),
  allowMembers: optional(
    'Body members that are passed on although they can redirect the call to another model, such as `["provider", "models"]` for OpenRouter.',
    Type.Array(Type.Enum(steeringMembers)),
  ),
  maxConnections: optional(
    'Most connections to it per worker. Further requests wait.',
    Type.Integer({ minimum: 1, maximum: 65_535 }),
  ),
  maxWaiting: optional(
    'Most requests that wait for a connection, per worker. Beyond it the next target is tried, else 503.',
    Type.Integer({ minimum: 0, maximum: 10_000_000 }),
  ),
});

const fetch = closedObject({
  ports: optional(
    'Ports from which files are fetched by URL. Ranges as in `"8000-8999"`. The origin of an upstream may use any port.',
    Type.Array(
      Type.Union(
        [Type.Integer({ minimum: 1, maximum: 65_535 }), Type.String({ pattern: '^\\d{1,5}-\\d{1,5}$' })],
        { expected: 'a port or a range such as "8000-8999"' },
      ),
    ),
  ),
  denyNetworks: optional(
    'Networks that are never fetched from: `"203.0.113.0/24"`, `"fd00::/8"` (including IPv4 in its IPv6 forms). Every address of a name is checked, also of redirects.',
    Type.Array(text),
  ),
  denyHosts: optional(
    'Names that are never fetched from: `"files.example.com"`, `"*.example.com"` for all below it.',
    Type.Array(text),
  ),
  proxy: optional(
    'Proxy for all files that are not at the origin of an upstream, as in `upstreams.*.proxy`. It resolves the names, so only the rules for names, ports and addresses in URLs apply.',
    text,
  ),
  proxyCa: optional('As in `upstreams.*.proxyCa`.', text),
});

const translation = closedObject({
  maxTokens: optional(
    'Output limit for a messages upstream if the client sets none. It is raised where thinking needs more.',
    positive,
  ),
  maxTokensField: optional(
    '`max_tokens` for chat upstreams that know no other.',
    Type.Enum(['max_completion_tokens', 'max_tokens']),
  ),
  thinking: optional(
    '`adaptive` (messages) or `levels` (generateContent) for models that take those.',
    Type.Enum(['budget', 'adaptive', 'levels']),
  ),
  jsonSchema: optional(
    '`false` for generateContent upstreams that know only the older form of schemas.',
    Type.Boolean(),
  ),
  customTools: optional(
    '`true` for chat upstreams that know tools of free text (`type: "custom"`); elsewhere these are functions.',
    Type.Boolean(),
  ),
  topK: optional(
    '`true` for chat upstreams that take `top_k`; elsewhere in chat it is left out.',
    Type.Boolean(),
  ),
  promptCaching: optional(
    '`false` for messages upstreams whose prompts are not to be marked with `cache_control` where the client has not done so.',
    Type.Boolean(),
  ),
  cacheBreakpoints: optional(
    '`true` for models of chat upstreams that know `prompt_cache_breakpoint`: marks of clients for prompt caches are sent as such. Elsewhere they are left out.',
    Type.Boolean(),
  ),
  threads: optional(
    '`false` for messages upstreams that take no notice of `thread`: threads are kept here, and they get whole requests without it.',
    Type.Boolean(),
  ),
  unsignedThinking: optional(
    '`true` for messages upstreams whose thinking has no signature, and has to be returned to them: thinking with an empty signature reaches them.',
    Type.Boolean(),
  ),
  systemMessages: optional(
    '`true` for messages upstreams whose model takes messages of the system within the conversation; elsewhere these are texts of the user.',
    Type.Boolean(),
  ),
  preservedThinking: optional(
    '`true` for messages upstreams whose model refuses thinking behind a prompt that has changed, and can be asked to drop it instead (by the beta that the preset `claude-5.5` adds). It has an effect on translated calls where `thinking` is `adaptive`.',
    Type.Boolean(),
  ),
  forcedCalls: optional(
    '`false` for messages upstreams whose model refuses a `tool_choice` that forces a call: in translated calls it is `auto` there, with an instruction to call the tool.',
    Type.Boolean(),
  ),
  encryptedReasoning: optional(
    '`true` for models of responses upstreams that reason unasked: their encrypted reasoning is requested with every call that has tools, so that it returns to them. Else it is requested with an effort; models that do not reason refuse it.',
    Type.Boolean(),
  ),
  search: optional(
    '`true` for chat upstreams whose models take `web_search_options`, and generateContent upstreams that search beside functions and formats; `false` for messages, responses and generateContent upstreams that do not search the web.',
    Type.Boolean(),
  ),
  hostedTools: optional(
    'What happens to tools that only another vendor can run. `drop` leaves them out, `reject` refuses the call.',
    Type.Enum(['reject', 'drop']),
  ),
});

const target = closedObject({
  upstream: described('Name of an upstream.', text),
  model: optional('Name of the model at the upstream. Default: the same name.', text),
  responses: optional(
    '`true`: a chat upstream\'s target takes responses calls as they come; `"only"`: and the other protocols\' calls are translated into responses. Else responses are translated into chat.',
    Type.Union([Type.Boolean(), Type.Literal('only')], { expected: 'true, false or "only"' }),
  ),
  images: optional(
    '`dashscope` for an upstream that takes `input` and `parameters`, `openai-files` for one that takes the images of an edit only as files. Named, it also says that the target makes images for generateContent calls that ask for one.',
    Type.Enum(['openai', 'openai-files', 'dashscope']),
  ),
  translation: Type.Optional(translation),
  preset: optional('As for an upstream. Replaces the preset of the upstream.', text),
  rules: optional('As `upstreams.*.rules`, with precedence over them.', rules),
  priority: optional(
    'Targets with a lower value are tried first.',
    Type.Integer({ minimum: 0, maximum: 1000 }),
  ),
  weight: optional(
    'Share of the calls among targets of equal priority.',
    Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  ),
  firstTokenMs: optional('As `models.*.firstTokenMs`, with precedence over it.', milliseconds),
  cost: optional(
    'What the operator pays for its calls, in the form of `models.*.price`. The ledger records it beside what clients are charged.',
    price,
  ),
});

const rateLimits = closedObject({
  requestsPerMinute: optional('Requests accepted in any 60 seconds.', positive),
  tokensPerMinute: optional('Input and output tokens in any 60 seconds.', positive),
  concurrent: optional('Concurrent calls. A realtime session is one.', positive),
});

const routing = closedObject({
  failures: optional('Consecutive failures after which the breaker of a target opens.', positive),
  failureRate: optional(
    'Share of failed calls at which the breaker opens, of at least `minimumCalls` within `windowMs`.',
    Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
  ),
  minimumCalls: optional('See `failureRate`.', positive),
  windowMs: optional('See `failureRate`.', milliseconds),
  openMs: optional('How long the breaker stays open. Doubled with every failed probe.', milliseconds),
  maxOpenMs: optional('Upper bound of this time.', milliseconds),
  affinity: optional(
    'Send calls of a key that begin with the same text to the same target and upstream key.',
    Type.Boolean(),
  ),
  loadFactor: optional(
    'Multiple of its fair share of calls in flight at which a target gets no more of these calls.',
    Type.Number({ minimum: 1, maximum: 100 }),
  ),
  retries: optional(
    'Retries at the last target of a call if nothing could be sent to it.',
    Type.Integer({ minimum: 0, maximum: 10 }),
  ),
});

const model = closedObject({
  protocols: described(
    'Protocols in which the model is offered.',
    Type.Array(Type.Enum(protocols), { minItems: 1 }),
  ),
  targets: Type.Array(target, { minItems: 1 }),
  price: Type.Optional(price),
  limits: Type.Optional(rateLimits),
  budget: Type.Optional(budgetOf('Limit for the cost of all calls of the model.')),
  inputTokens: optional(
    'Most input tokens. Shown in model lists. An upstream that reports more than a hundred times as many, and more than 1,000,000, [is not believed](usage.md#more-than-a-call-can-have-used).',
    positive,
  ),
  outputTokens: optional(
    'Most output tokens. Shown in model lists, and the most that budgets and limits reserve for an answer. Bounds reported usage as `inputTokens` does.',
    positive,
  ),
  firstTokenMs: optional(
    'Time for the first event of a stream that has [content](routing.md#first-token). After it the next target is tried, if there is one.',
    milliseconds,
  ),
  hedgeMs: optional(
    'Time after which a call without an answer, or a stream without [content](routing.md#first-token), is also sent to the next target.',
    milliseconds,
  ),
});

/** @param usd describes what the money is for */
function budgetOf(usd: string) {
  return closedObject({
    usd: described(usd, Type.Number({ exclusiveMinimum: 0 })),
    per: described(
      'Period of the budget, in UTC. A week begins on Monday.',
      Type.Enum(['day', 'week', 'month']),
    ),
  });
}

const key = closedObject({
  id: described('Name of the key in logs, metrics and the ledger.', text),
  hash: described(
    'Hash of the key, as printed by `model-gateway key new`.',
    Type.String({
      pattern: '^sha256:[0-9a-fA-F]{64}$',
      expected: '"sha256:" and 64 hex digits (see: model-gateway key hash)',
    }),
  ),
  groups: described(
    'Groups of the key. It may use the models of all of them.',
    Type.Array(text, { minItems: 1 }),
  ),
  limits: Type.Optional(rateLimits),
  mayRoute: optional('The key may select targets with `x-gateway-target`.', Type.Boolean()),
  budget: Type.Optional(budgetOf("Limit for the cost of the key's calls, at the prices of their models.")),
  expiresAt: optional('Time such as `2027-01-01T00:00:00Z`, from which the key is refused.', text),
});

const group = closedObject({
  models: described('Names of models, or `*` for all.', Type.Array(text)),
  limits: Type.Optional(rateLimits),
  budget: Type.Optional(budgetOf('Limit for the cost of all calls of the keys in the group.')),
  priceFactor: optional(
    'Factor on the charges for calls of its keys. A key in several such groups gets the lowest.',
    Type.Number({ minimum: 0, maximum: 1000 }),
  ),
  shareVideos: optional("Keys of the group see each other's video tasks.", Type.Boolean()),
});

/** Schema of the config file. `check.ts` checks what concerns two places of it. */
export const configSchema = closedObject({
  listen: Type.Optional(listen),
  admin: Type.Optional(admin),
  workers: optional('Worker processes; 0 for one per core.', Type.Integer({ minimum: 0, maximum: 1024 })),
  store: Type.Optional(store),
  outage: Type.Optional(outage),
  usage: Type.Optional(usage),
  videos: Type.Optional(videos),
  unpriced: optional(
    'What happens to calls that have a budget (of their key, a group or the model) and no price. `refuse`: 403. `free`: they cost nothing.',
    Type.Enum(['refuse', 'free']),
  ),
  conversations: Type.Optional(conversations),
  vendors: Type.Optional(vendors),
  limits: Type.Optional(limits),
  timeouts: Type.Optional(timeouts),
  routing: Type.Optional(routing),
  sockets: Type.Optional(sockets),
  fetch: Type.Optional(fetch),
  secret: optional(
    'Secret that seals data which clients carry for the gateway. Must be the same on all hosts that serve the same clients, and is required if they share a store.',
    Type.String({ minLength: 32 }),
  ),
  defaultModels: Type.Optional(
    closedObject({
      rerank: optional('Model for rerank calls without one.', text),
      moderations: optional('Model for moderations without one.', text),
      realtime: optional('Model for realtime sessions without one.', text),
      video: optional('Model for vendorj video tasks without `req_key`.', text),
    }),
  ),
  upstreams: Type.Record(Type.String(), upstream),
  models: Type.Record(Type.String(), model),
  groups: Type.Record(Type.String(), group),
  keys: Type.Array(key),
});

/** A config file after `${ENV}` interpolation, without defaults. */
export type ConfigFile = Static<typeof configSchema>;
