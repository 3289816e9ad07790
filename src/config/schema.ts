import { type Static, Type } from 'typebox';
import { steeringMembers } from '../wire/steering-members.js';
import { price } from './price-schema.js';
import { rules } from './rules-schema.js';
import { closedObject, described, headerValue, optional } from './setting.js';
import { keyHeaders, protocols, upstreamKinds } from './words.js';

/* What the gateway keeps of calls that have ended. */

const days = Type.Integer({ minimum: 1, maximum: 3650 });
const usage = closedObject({
  ledger: optional('Finished calls have lines in the store.', Type.Boolean()),
  lineDays: optional('How long these lines are kept.', days),
  sumDays: optional('How long the sums of a day are kept.', days),
});

const videos = closedObject({
  folder: Type.String({
    minLength: 1,
    description: 'Where the videos of finished tasks are kept, with this they are.',
  }),
  days: optional('How long a video is kept, from when its task was made.', days),
  bytes: optional(
    'Of all videos in the folder: the oldest give way to new ones.',
    Type.Integer({ minimum: 1_048_576 }),
  ),
  fileBytes: optional('Of one video: a larger one is not kept.', Type.Integer({ minimum: 1 })),
});

const keptBytes = Type.Integer({ minimum: 4096, maximum: 2 ** 37 });
const conversations = Type.Union(
  [
    Type.Literal('off'),
    closedObject({
      hours: optional('How long a turn is kept.', Type.Integer({ minimum: 1, maximum: 8760 })),
      keyBytes: optional("What is kept of one key's turns; the oldest give way to new ones.", keptBytes),
      bytes: optional("The same of all keys' turns together.", keptBytes),
      recordBytes: optional('Of one turn: a larger one is not kept.', keptBytes),
    }),
  ],
  {
    expected: '"off" or an object',
    description:
      'What is kept of the turns of translated calls, so that clients may go on from them by their ids: see [Conversations](conversations.md). `"off"` keeps nothing.',
  },
);

/** Setters of timers take 32 signed bits: beyond, a deadline would fire at once. */
const longestMs = 2_147_483_647;

const text = Type.String({ minLength: 1 });
const milliseconds = Type.Integer({ minimum: 1, maximum: longestMs });
const port = Type.Integer({ minimum: 0, maximum: 65_535 });
const positive = Type.Integer({ minimum: 1 });
const words = Type.Array(Type.String({ pattern: '^[a-z][a-z0-9-]*$', expected: 'a lower-case word' }));

const host = Type.String({
  pattern: '^([A-Za-z0-9._-]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?)$',
  expected: 'an address or the name of a host, without scheme and port',
});

const listen = closedObject({
  host: optional('Address to listen on.', host),
  port: optional('Port to listen on; 0 picks a free one.', port),
  tls: Type.Optional(
    closedObject({
      cert: described(
        'PEM file of the certificate and its chain; with it the listener speaks HTTPS. Read again with every reload.',
        text,
      ),
      key: described('PEM file of the private key.', text),
    }),
  ),
  cors: Type.Optional(
    closedObject({
      origins: described(
        'Pages that may call from a browser; `["*"]` for all.',
        Type.Array(
          Type.String({
            pattern: '^(\\*|[a-z][a-z0-9+.-]*://(?:(?![/?#,])[!-~])+)$',
            expected: 'an origin such as "https://app.example.com", or "*"',
          }),
          { minItems: 1 },
        ),
      ),
      maxAgeSeconds: optional(
        'How long a browser may keep the answer to a preflight.',
        Type.Integer({ minimum: 0, maximum: 86_400 }),
      ),
    }),
  ),
  trustedProxies: optional(
    'Addresses and networks (`["10.0.0.0/8", "fd00::/8"]`) whose `x-forwarded-*` headers are believed; `[]` for nobody\'s. Where it is given, request lines of the log have the `client`.',
    Type.Array(text),
  ),
  publicUrl: optional(
    "Where clients reach the gateway, for URLs in its answers; without it, what the request's `host` header says.",
    Type.String({ pattern: '^https?://[^\\s?#]+$', expected: 'an http(s) URL without a query' }),
  ),
});

const adminToken = Type.String({ minLength: 16 });
const admin = closedObject({
  host: optional("Address of the operators' listener.", host),
  port: optional('Its port.', port),
  token: described('What operators sign in with.', adminToken),
  readToken: optional(
    'For operators who only look: with it whatever changes something is 403, and the console has no buttons for that.',
    adminToken,
  ),
  metricsToken: optional('For `GET /metrics` alone.', adminToken),
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
    'Where its tables are in the database.',
    Type.String({ pattern: '^[a-z_][a-z0-9_]{0,47}$', expected: 'small letters, digits and "_"' }),
  ),
  timeoutMs: optional(
    'Longest wait for an answer of PostgreSQL. A batch of usage that was too much for it gets twice as long with each try, up to eight times.',
    Type.Integer({ minimum: 10, maximum: 60_000 }),
  ),
  taskDays: optional('How long video tasks are kept.', Type.Integer({ minimum: 1, maximum: 365 })),
});

const stance = Type.Enum(['open', 'closed']);
const outage = closedObject({
  budgets: optional(
    'While the store is gone, with `closed` calls that need more of a budget than is reserved get 503; `open` serves them and tells the store later.',
    stance,
  ),
  rates: optional(
    'While a store of kind `postgres` cannot be reached, with `open` each host counts alone, with the whole limits; with `closed` it uses up what it was given, then answers 503. The same decides on calls of a worker that the primary process does not answer in time.',
    stance,
  ),
});

const vendors = closedObject({
  vendorc: optional(
    'Real words beside the neutral one in header names: `anthropic-version` beside `vendorc-version`.',
    words,
  ),
  vendorg: optional('The same: `x-goog-api-key` beside `x-vendorg-api-key`.', words),
  vendork: optional('The same in paths: `/kling/…` beside `/vendork/…`.', words),
  vendorj: optional('The same in paths: `/jimeng/` beside `/vendorj/`.', words),
});

const limits = closedObject({
  bodyBytes: optional('Largest request body, decoded.', positive),
  bodyValues: optional(
    'Most values of a JSON body; each array, object and name of a member counts as four. Beyond it 400.',
    positive,
  ),
  uploadBytes: optional('Largest form that is passed on.', positive),
  headerBytes: optional('Largest request head.', Type.Integer({ minimum: 4096, maximum: 1_048_576 })),
  bufferedBytes: optional(
    'Bytes that one worker holds at once of bodies, of files that it fetches, of answers that it collects and of ends of streams that clients have yet to take; beyond it 503. Counted as they come, whatever a body announces.',
    positive,
  ),
  bufferedBytesPerKey: optional(
    "Of these, the bytes of one key's calls; beyond it 503 for that key alone. A quarter of `bufferedBytes`, at least `bodyBytes`.",
    positive,
  ),
  leastBodyRate: optional(
    'Bytes a second; a slower body is cut with 408, a slower file that is fetched with 400; 0 for neither.',
    Type.Integer({ minimum: 0, maximum: 1_073_741_824 }),
  ),
});

const sockets = closedObject({
  messageBytes: optional(
    "Largest message of a WebSocket, either way; a client's larger one ends the connection at its head, without a close frame.",
    Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
  ),
  waitingBytes: optional(
    'What may wait for a slow realtime upstream, or for the response before, until more is refused.',
    positive,
  ),
  perKey: optional(
    'WebSockets that a key may have open at one worker; beyond it 429. Each of them may hold a message that has not ended, of up to `messageBytes`, until the worker comes to look.',
    positive,
  ),
  heldBytes: optional(
    'What the WebSockets of a worker may hold in memory: 16 KiB each, what waits either way, kept conversations, and unfinished messages; beyond it 503. At least four times `messageBytes` where it is not given.',
    positive,
  ),
  heldBytesPerKey: optional(
    "Of these, one key's; beyond it 429. A quarter of `heldBytes`, at least `messageBytes`.",
    positive,
  ),
  // What the server underneath can count to.
  idleMs: optional(
    'A client that is silent, or within a message, for so long and answers no ping is given up.',
    Type.Integer({ minimum: 8000, maximum: 960_000 }),
  ),
  pingMs: optional('Silence of an upstream before it is pinged.', milliseconds),
  sessionMs: optional('Longest session.', milliseconds),
  responses: optional('Responses over a WebSocket; `false` answers 426.', Type.Boolean()),
  historyBytes: optional('What is kept of a conversation over such a socket.', Type.Integer({ minimum: 0 })),
});

const timeouts = closedObject({
  bodyMs: optional('For a request body to arrive.', milliseconds),
  bodyGraceMs: optional(
    'A body has to keep the least rate over each such stretch of time in which the gateway reads it.',
    milliseconds,
  ),
  keepAliveMs: optional(
    'Silence on a stream before a keep-alive is sent; 0 for never.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
  connectMs: optional('For a connection to an upstream, TLS included.', milliseconds),
  firstByteMs: optional('From the request to the head of the answer.', milliseconds),
  idleMs: optional(
    'Between two reads of an answer; does not run while the client is the slow one.',
    milliseconds,
  ),
  totalMs: optional('For a whole answer.', milliseconds),
  drainMs: optional('For answers to finish after SIGTERM.', milliseconds),
  unreadyMs: optional(
    'After SIGTERM: so long `/ready` says 503 and everything is still served, so that balancers can look.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
  orphanMs: optional(
    'When the primary process has died, its workers serve on until the next one has taken over, for so long at most; with 0 they only finish their answers.',
    Type.Integer({ minimum: 0, maximum: longestMs }),
  ),
});

const headerName = Type.String({ minLength: 1, maxLength: 256 });

const upstream = closedObject({
  kind: described(
    'The protocol that it speaks: `chat` is all that is OpenAI-shaped, `vendork`, `vendorj` and `generic` are video formats.',
    Type.Enum(upstreamKinds),
  ),
  baseUrl: optional(
    'With the version: `https://api.example.com/v1`; without a path `/v1` is assumed for `messages` and `/v1beta` for `generateContent`. Required but for the simulator.',
    text,
  ),
  apiKeys: optional(
    'Sent as bearer, `x-api-key` or `x-goog-api-key`, by kind; each of several has a health of its own.',
    Type.Array(Type.String({ pattern: '^[\\u0021-\\u007e]+$', expected: 'a key without spaces' })),
  ),
  keyHeader: optional(
    'Header that the keys are sent in where it is not that of the kind: `api-key` for OpenAI models on Azure; `authorization` has them as bearer.',
    Type.Enum(keyHeaders),
  ),
  query: optional(
    'Parameters that the query of every request to it has, such as `{"api-version": "2024-10-21"}`.',
    Type.Record(Type.String({ minLength: 1, maxLength: 256 }), text),
  ),
  headers: optional(
    'Added to every request; values of printable ASCII.',
    Type.Record(Type.String(), Type.String(headerValue)),
  ),
  forwardHeaders: optional(
    "Headers of a client's request that are passed beside those that always are: `rules.headers.pass` of the upstream.",
    Type.Array(headerName, { maxItems: 64 }),
  ),
  returnHeaders: optional(
    'Headers of its answers that the client gets beside those that it always does.',
    Type.Array(headerName, { maxItems: 64 }),
  ),
  preset: optional('Rules and settings of translation for a vendor, by name: see [Rules](rules.md).', text),
  rules: Type.Optional(rules),
  tls: Type.Optional(
    closedObject({
      ca: optional('Certificates of the authority that is trusted: a PEM file, or its text.', text),
      cert: optional(
        'Certificate that is shown to it where it asks for one, with its chain: a PEM file, or its text. Read again with every reload.',
        text,
      ),
      key: optional('Private key of `cert`, without a passphrase: a PEM file, or its text.', text),
      verify: optional('`false` for tests only.', Type.Boolean()),
      serverName: optional('Name in the certificate, where it is not the host of `baseUrl`.', text),
    }),
  ),
  proxy: optional(
    '`http://user:password@host:port` of a proxy through which all connections to it go, by CONNECT; `https://` for TLS to the proxy.',
    text,
  ),
  proxyCa: optional(
    "Certificates of the authority that is trusted for an `https://` proxy, in place of the system's: a PEM file, or its text.",
    text,
  ),
  injectUsage: optional('Ask for the usage of streams where the client did not.', Type.Boolean()),
  onLeave: optional(
    'What becomes of a call whose client leaves: `drain` reads on for its usage, for 10 s or 2,000 output tokens at most; `cancel` ends it at once.',
    Type.Enum(['drain', 'cancel']),
  ),
  responsesSocket: optional('It takes responses over a WebSocket, too.', Type.Boolean()),
  fetchPrivate: optional(
    'Media for it may be fetched from private addresses, on the ports of `fetch.ports`.',
    Type.Boolean(),
  ),
  allowMembers: optional(
    'Members of bodies that it may get though they could lead it elsewhere, such as `["provider", "models"]` for OpenRouter.',
    Type.Array(Type.Enum(steeringMembers)),
  ),
  maxConnections: optional(
    'Connections to it, in each worker: requests beyond them wait.',
    Type.Integer({ minimum: 1, maximum: 65_535 }),
  ),
  maxWaiting: optional(
    'Requests that wait for a connection, in each worker; beyond it the next target is asked, or 503.',
    Type.Integer({ minimum: 0, maximum: 10_000_000 }),
  ),
});

const fetch = closedObject({
  ports: optional(
    'Ports from which anything is fetched by URL; ranges as `"8000-8999"`. An upstream\'s own origin may have any.',
    Type.Array(
      Type.Union(
        [Type.Integer({ minimum: 1, maximum: 65_535 }), Type.String({ pattern: '^\\d{1,5}-\\d{1,5}$' })],
        { expected: 'a port or a range such as "8000-8999"' },
      ),
    ),
  ),
  denyNetworks: optional(
    'Never fetched from, whatever else allows it: `"203.0.113.0/24"`, `"fd00::/8"` (IPv4 in its IPv6 forms included). Every address of a name is checked, of redirects too.',
    Type.Array(text),
  ),
  denyHosts: optional(
    'The same for names: `"files.example.com"`, `"*.example.com"` for all below it.',
    Type.Array(text),
  ),
  proxy: optional(
    "Proxy through which everything is fetched that is not at an upstream's own origin, as in `upstreams.*.proxy`. It looks the names up: of the rules, those for names, ports and addresses in URLs hold.",
    text,
  ),
  proxyCa: optional('As in `upstreams.*.proxyCa`.', text),
});

const translation = closedObject({
  maxTokens: optional('Limit of output for a messages upstream when the client names none.', positive),
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
  threads: optional(
    '`false` for messages upstreams that take no notice of `thread`: threads are kept here, and they get whole requests without it.',
    Type.Boolean(),
  ),
  search: optional(
    '`true` for chat upstreams whose models take `web_search_options`, and generateContent upstreams that search beside functions and formats; `false` for messages, responses and generateContent upstreams that do not search the web.',
    Type.Boolean(),
  ),
  hostedTools: optional(
    'Tools that only another vendor can run are left out; `reject` refuses them.',
    Type.Enum(['reject', 'drop']),
  ),
});

const target = closedObject({
  upstream: described('Name of an upstream.', text),
  model: optional("The model's name there; the same name where it is not given.", text),
  responses: optional(
    '`true`: a chat upstream\'s target takes responses calls as they come; `"only"`: and the other protocols\' calls are translated into responses. Else responses are translated into chat.',
    Type.Union([Type.Boolean(), Type.Literal('only')], { expected: 'true, false or "only"' }),
  ),
  images: optional(
    '`dashscope` for an upstream that takes `input` and `parameters`, `openai-files` for one that takes the images of an edit only as files. Named, it also says that the target makes images for generateContent calls that ask for one.',
    Type.Enum(['openai', 'openai-files', 'dashscope']),
  ),
  translation: Type.Optional(translation),
  preset: optional('As for an upstream, whose preset it replaces.', text),
  rules: optional('As `upstreams.*.rules`, over which they win.', rules),
  priority: optional('Lower is tried first.', Type.Integer({ minimum: 0, maximum: 1000 })),
  weight: optional(
    'Share of the calls among targets of equal priority.',
    Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  ),
  firstTokenMs: optional('As `models.*.firstTokenMs`, over which it wins.', milliseconds),
  cost: optional(
    'What its calls cost whoever runs the gateway, in the form of `models.*.price`: the ledger has it beside what clients are charged.',
    price,
  ),
});

const rateLimits = closedObject({
  requestsPerMinute: optional('Requests accepted in any 60 seconds.', positive),
  tokensPerMinute: optional('Tokens of input and output in any 60 seconds.', positive),
  concurrent: optional('Calls under way; a realtime session is one.', positive),
});

const routing = closedObject({
  failures: optional('Failures in a row after which a target is left alone.', positive),
  failureRate: optional(
    'The same for a share of failures, of `minimumCalls` at least within `windowMs`.',
    Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
  ),
  minimumCalls: optional('See `failureRate`.', positive),
  windowMs: optional('See `failureRate`.', milliseconds),
  openMs: optional('How long a target is left alone; doubled with every probe that fails.', milliseconds),
  maxOpenMs: optional('The longest that this becomes.', milliseconds),
  affinity: optional(
    'Calls of a key that begin alike go to the same target and upstream key.',
    Type.Boolean(),
  ),
  loadFactor: optional(
    'Times its fair share that a target may have under way before such calls go elsewhere.',
    Type.Number({ minimum: 1, maximum: 100 }),
  ),
  retries: optional(
    'How often the last target of a call is asked again when nothing could be sent to it.',
    Type.Integer({ minimum: 0, maximum: 10 }),
  ),
});

const model = closedObject({
  protocols: described('Where the model is offered.', Type.Array(Type.Enum(protocols), { minItems: 1 })),
  targets: Type.Array(target, { minItems: 1 }),
  price: Type.Optional(price),
  limits: Type.Optional(rateLimits),
  budget: Type.Optional(budgetOf("What the model's calls of all keys may cost together.")),
  inputTokens: optional('Tokens that it takes at most; lists of models say so.', positive),
  outputTokens: optional(
    'Tokens that it gives at most; lists of models say so, and no call takes more for an answer of its budgets and limits.',
    positive,
  ),
  firstTokenMs: optional(
    'A target of a stream that has sent no event of its answer after so long is given up, and the next one asked, while there is one.',
    milliseconds,
  ),
  hedgeMs: optional(
    'A call that has no answer after so long, or of a stream no event, is sent to the next target as well.',
    milliseconds,
  ),
});

/** @param usd what its money is for */
function budgetOf(usd: string) {
  return closedObject({
    usd: described(usd, Type.Number({ exclusiveMinimum: 0 })),
    per: described(
      'In which time: a week begins on Monday, all of them in UTC.',
      Type.Enum(['day', 'week', 'month']),
    ),
  });
}

const key = closedObject({
  id: described('Its name in logs, metrics and the ledger.', text),
  hash: described(
    'As `model-gateway key new` prints it.',
    Type.String({
      pattern: '^sha256:[0-9a-fA-F]{64}$',
      expected: '"sha256:" and 64 hex digits (see: model-gateway key hash)',
    }),
  ),
  groups: described('A call may use the models of any of them.', Type.Array(text, { minItems: 1 })),
  limits: Type.Optional(rateLimits),
  mayRoute: optional('Its calls may name targets in `x-gateway-target`.', Type.Boolean()),
  budget: Type.Optional(budgetOf("What the key's calls may cost by the prices of their models.")),
  expiresAt: optional('A time such as `2027-01-01T00:00:00Z`; a key that has expired stops at once.', text),
});

const group = closedObject({
  models: described('Names, or `*` for all.', Type.Array(text)),
  limits: Type.Optional(rateLimits),
  budget: Type.Optional(budgetOf('What the calls of all keys of the group may cost together.')),
  priceFactor: optional(
    'Factor on what calls of its keys are charged; of a key in several such groups the least.',
    Type.Number({ minimum: 0, maximum: 1000 }),
  ),
  shareVideos: optional("Its keys see each other's video tasks.", Type.Boolean()),
});

/** The config file's shape. What joins two places of it is checked in `check.ts`. */
export const configSchema = closedObject({
  listen: Type.Optional(listen),
  admin: Type.Optional(admin),
  workers: optional('Worker processes; 0 for one per core.', Type.Integer({ minimum: 0, maximum: 1024 })),
  store: Type.Optional(store),
  outage: Type.Optional(outage),
  usage: Type.Optional(usage),
  videos: Type.Optional(videos),
  unpriced: optional(
    'Calls that have a budget (of their key, one of its groups or their model) and ask a model without a price: `refuse` answers them with 403, with `free` they cost nothing.',
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
    'Seals what clients carry for the gateway; hosts that share clients share it. Required where they share a store.',
    Type.String({ minLength: 32 }),
  ),
  defaultModels: Type.Optional(
    closedObject({
      rerank: optional('Model of rerank calls that name none.', text),
      moderations: optional('Model of moderations that name none.', text),
      realtime: optional('Model of realtime sessions that name none.', text),
      video: optional('Model of vendorj video tasks that name none in `req_key`.', text),
    }),
  ),
  upstreams: Type.Record(Type.String(), upstream),
  models: Type.Record(Type.String(), model),
  groups: Type.Record(Type.String(), group),
  keys: Type.Array(key),
});

/** A config file after `${ENV}` interpolation, defaults not yet filled in. */
export type ConfigFile = Static<typeof configSchema>;
