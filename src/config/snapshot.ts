import { createHash } from 'node:crypto';
import type { Origin } from '../upstream/origin.js';
import { initialsOf } from '../wire/head.js';
import { needleOf } from '../wire/json-skip.js';
import { type Steps, sortSteps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import { presetOf } from './presets.js';
import type { ResolvedConfig, ResolvedModel, ResolvedUpstream } from './resolve.js';
import { mergeHeaders, mergeRules, rulesForOff } from './rules.js';
import type { RuleSettings } from './rules-schema.js';
import type {
  Group,
  Key,
  KeyMark,
  Model,
  OwnSecrets,
  Protocol,
  RateLimits,
  Snapshot,
  Target,
  TargetRules,
  Upstream,
} from './types.js';
import { kindTraits, nativeProtocols, translationProtocol } from './upstream-kinds.js';

interface Surroundings {
  /** `http://127.0.0.1:PORT` of the running simulator. Null if no upstream is of that kind. */
  readonly simulatorUrl: string | null;
}

/**
 * Builds the running config: names become references, lists become maps. Keys of the same groups share one map of
 * models, so 100,000 keys need no more than their own records.
 * @throws Error if an upstream is of kind simulator and no simulator runs
 */
export function* snapshotSteps(config: ResolvedConfig, surroundings: Surroundings): Steps<Snapshot> {
  const targetRules = yield* rulesOfTargets(config);
  const upstreams = new Map<string, Upstream>();
  const given = new Map<string, GivenUpstream>();
  for (const settings of config.upstreams) {
    const { name } = settings;
    upstreams.set(name, buildUpstream(settings, targetRules.get(name) ?? [], surroundings));
    given.set(name, { settings, rules: mergeRules(layersOf(settings, null)) });
    yield;
  }
  const setOf = createSharedSets();
  const built: Model[] = [];
  for (const model of config.models) {
    built.push(buildModel(model, upstreams, given, setOf));
    yield;
  }
  const models = new Map<string, Model>();
  const passed = new Set<string>();
  for (const { clientHeaders } of upstreams.values())
    for (const name of clientHeaders?.pass ?? []) passed.add(name);
  let translates = false;
  for (const model of yield* sortSteps(built, byName)) {
    models.set(model.name, model);
    translates ||= isTranslated(model);
    for (const { clientHeaders } of model.targets)
      for (const name of clientHeaders?.pass ?? []) passed.add(name);
    yield;
  }
  const { keys, keyIds } = yield* buildKeys(config, models);
  const { admin: _admin, ...kept } = config;
  return {
    ...kept,
    translates,
    passedHeaders: [...passed],
    returnedHeaders: [...new Set(config.upstreams.flatMap(({ returnHeaders }) => returnHeaders))],
    secret: config.secret.text,
    upstreams,
    models,
    keys,
    keyIds,
  };
}

/** Whether an upstream is the built-in simulator, which then has to run. */
export function needsSimulator(config: ResolvedConfig): boolean {
  return config.upstreams.some((upstream) => upstream.kind === 'simulator');
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

type ResolvedTarget = ResolvedModel['targets'][number];

/** Returns the rules of an upstream, and of one of its targets if given. Later ones take precedence. */
function layersOf(upstream: ResolvedUpstream, target: ResolvedTarget | null): readonly RuleSettings[] {
  const preset = target?.preset == null ? presetOf(upstream.preset) : null;
  const layers = [preset?.rules, upstream.rules, presetOf(target?.preset)?.rules, target?.rules];
  return layers.filter((layer) => layer != null);
}

function returnedHeaders(names: readonly string[]): Upstream['returnHeaders'] {
  if (names.length === 0) return null;
  return { names: new Set(names), initials: initialsOf(names.map((name) => name.charAt(0)).join('')) };
}

/** Collects the rules of targets, by upstream name. */
function* rulesOfTargets({ models }: ResolvedConfig): Steps<Map<string, RuleSettings[]>> {
  const found = new Map<string, RuleSettings[]>();
  for (const { targets } of models) {
    for (const { upstream, rules } of targets) {
      if (rules === null) continue;
      const known = found.get(upstream);
      if (known === undefined) found.set(upstream, [rules]);
      else known.push(rules);
    }
    yield;
  }
  return found;
}

/** Collects every configured header that a call to the upstream may have. */
function allHeaders(
  upstream: ResolvedUpstream,
  ofTargets: readonly RuleSettings[],
): readonly (readonly [string, string])[] {
  const layers = [upstream.rules, ...ofTargets].flatMap((rules) => Object.entries(rules?.headers?.set ?? {}));
  return [...upstream.headers, ...layers];
}

function buildUpstream(
  upstream: ResolvedUpstream,
  ofTargets: readonly RuleSettings[],
  surroundings: Surroundings,
): Upstream {
  const baseUrl = upstream.kind === 'simulator' ? simulatorBase(surroundings) : upstream.baseUrl;
  if (baseUrl === null) throw new Error(`the upstream ${upstream.name} has no address`);
  return {
    name: upstream.name,
    kind: upstream.kind,
    origin: createOrigin(baseUrl, {
      ...upstream.tls,
      proxy: upstream.proxy,
      maxConnections: upstream.maxConnections,
      maxWaiting: upstream.maxWaiting,
    }),
    basePath: new URL(baseUrl).pathname.replace(/\/+$/, '') || (kindTraits[upstream.kind].versionPath ?? ''),
    baseQuery: new URLSearchParams(upstream.query).toString(),
    injectUsage: upstream.injectUsage,
    onLeave: upstream.onLeave,
    responsesSocket: upstream.responsesSocket,
    fetchPrivate: upstream.fetchPrivate,
    allowMembers: new Set(upstream.allowMembers),
    apiKeys: upstream.apiKeys,
    keyHeader: upstream.keyHeader,
    returnHeaders: returnedHeaders(upstream.returnHeaders),
    ...mergeHeaders(upstream, layersOf(upstream, null)),
    secrets: ownSecrets(upstream.apiKeys, allHeaders(upstream, ofTargets)),
  };
}

/** The simulator is an OpenAI-compatible server, with its API under `/v1`. */
function simulatorBase(surroundings: Surroundings): string | null {
  return surroundings.simulatorUrl === null ? null : `${surroundings.simulatorUrl}/v1`;
}

/** An upstream of responses may lack compactions, which the gateway then makes. */
function isTranslated({ protocols, targets }: Model): boolean {
  return (
    protocols.has('responses') ||
    targets.some((target) => [...protocols].some((protocol) => !target.native.has(protocol)))
  );
}

/** Creates a function that replaces each value by the first one with the same text. */
function createShared<Value>(textOf: (value: Value) => string): (value: Value) => Value {
  const known = new Map<string, Value>();
  return (value) => {
    const text = textOf(value);
    const shared = known.get(text) ?? value;
    if (shared === value) known.set(text, value);
    return shared;
  };
}

type SetOf = (protocols: Iterable<Protocol>) => ReadonlySet<Protocol>;

/**
 * Creates a function that returns one set for the same protocols. Calls for thousands of models then read few sets, at
 * every step.
 */
function createSharedSets(): SetOf {
  const shared = createShared((set: ReadonlySet<Protocol>) => [...set].join());
  return (protocols) => shared(new Set(protocols));
}

/** An upstream's settings, with its merged rules. */
interface GivenUpstream {
  readonly settings: ResolvedUpstream;
  readonly rules: TargetRules | null;
}

/** Shared by thousands of models. */
const none: readonly Target[] = [];

function buildModel(
  model: ResolvedModel,
  upstreams: ReadonlyMap<string, Upstream>,
  given: ReadonlyMap<string, GivenUpstream>,
  setOf: SetOf,
): Model {
  const isOffered = model.protocols.includes('images');
  const drawing: Target[] = [];
  const targets = model.targets.map((target): Target => {
    const upstream = upstreams.get(target.upstream);
    const known = given.get(target.upstream);
    if (upstream === undefined || known === undefined)
      throw new Error(`the model ${model.name} has a target without an upstream`);
    // Shared with the upstream if the target has no rules, so that requests of thousands of models begin with the same
    // bytes.
    const layers = target.preset === null && target.rules === null ? null : layersOf(known.settings, target);
    const configured = layers === null ? upstream : mergeHeaders(known.settings, layers);
    const rules = layers === null ? known.rules : mergeRules(layers);
    const built: Target = {
      upstream,
      model: target.model,
      headers: configured.headers,
      clientHeaders: configured.clientHeaders,
      rules,
      rulesForOff: target.translation.thinking === 'adaptive' ? rulesForOff(rules) : null,
      native: setOf(nativeProtocols(upstream.kind, target.responses)),
      translatesTo: translationProtocol(upstream.kind, target.responses),
      images: target.images ?? 'openai',
      translation: {
        ...target.translation,
        model: target.model,
        upstream: upstream.name,
        streamUsage: upstream.injectUsage,
      },
      priority: target.priority,
      weight: target.weight,
      firstTokenMs: target.firstTokenMs ?? model.firstTokenMs,
      cost: target.cost,
    };
    if (built.native.has('images') && (isOffered || target.images !== null)) drawing.push(built);
    return built;
  });
  targets.sort((a, b) => a.priority - b.priority);
  return {
    name: model.name,
    protocols: setOf(model.protocols),
    targets,
    drawing: drawing.length === 0 ? none : drawing,
    created: model.created,
    price: model.price,
    limits: model.limits,
    budget: model.budget,
    hedgeMs: model.hedgeMs,
    tokens: model.tokens,
  };
}

function* buildKeys(
  config: ResolvedConfig,
  all: ReadonlyMap<string, Model>,
): Steps<Pick<Snapshot, 'keys' | 'keyIds'>> {
  const shareOf = createKeyShares(config.groups, all);
  const keys = new WideMap<Key>();
  const keyIds = new WideMap<Key>();
  const listOf = createShared((names: readonly string[]) => names.join('\n'));
  const limitsOf = createShared(
    ({ requestsPerMinute, tokensPerMinute, concurrent }: RateLimits) =>
      `${requestsPerMinute} ${tokensPerMinute} ${concurrent}`,
  );
  for (const { id, hash, groups, expiresAt, limits, budget, mayRoute } of config.keys) {
    const { models, groupLimits, groupBudgets, priceFactor } = shareOf(groups);
    // Without a spread, whose properties V8 stores in a second object, for each of 100,000 keys.
    const key: Key = {
      id,
      hash,
      groups: listOf(groups),
      models,
      expiresAt,
      limits: limits === null ? null : limitsOf(limits),
      budget,
      groupLimits,
      groupBudgets,
      priceFactor,
      mayRoute,
      pools: null,
    };
    keys.set(hash, key);
    keyIds.set(id, key);
    yield;
  }
  return { keys, keyIds };
}

type OriginOptions = Omit<Origin, 'identity' | 'secure' | 'host' | 'port' | 'authority' | 'isKept'>;

/**
 * Creates the origin of a base URL. Its identity contains everything that two requests must have in common to share a
 * connection: scheme, host and port, for TLS the server name, the trusted authority, whether certificates are verified
 * and the client certificate, and the proxy.
 * @param baseUrl an http or https URL
 */
export function createOrigin(baseUrl: string, options: OriginOptions): Origin {
  const url = new URL(baseUrl);
  const secure = url.protocol === 'https:';
  // URL keeps the brackets of an IPv6 address. Sockets and certificates need it without them.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const serverName = secure ? (options.serverName ?? host) : null;
  const ca = secure ? options.ca : null;
  const verify = secure ? options.verify : true;
  const clientCertificate = secure ? options.clientCertificate : null;
  const { proxy } = options;
  return {
    identity: JSON.stringify([
      secure ? 'https' : 'http',
      host,
      port,
      serverName,
      ca === null ? '' : hashOf(ca),
      verify,
      clientCertificate === null ? '' : hashOf(JSON.stringify(clientCertificate)),
      proxy?.identity ?? '',
    ]),
    secure,
    host,
    port,
    authority: url.host,
    serverName,
    ca,
    clientCertificate,
    proxy,
    verify,
    isKept: true,
    maxConnections: options.maxConnections,
    maxWaiting: options.maxWaiting,
  };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Minimum length of a secret. Shorter values are ordinary words. */
const leastSecret = 8;
/**
 * Minimum length of a mark. A shorter value, or one without a digit, may occur in ordinary text: `sk-no-key-required`,
 * `not-needed`.
 */
const leastMarked = 16;
const keyHeader = /auth|key|token|secret|pass|cookie|credential|signature/i;
const scheme = /^[\w-]+ +/;

/** Collects an upstream's secrets, from its keys and the headers sent to it. */
export function ownSecrets(
  apiKeys: readonly string[],
  headers: readonly (readonly [string, string])[],
): OwnSecrets {
  const all: string[] = [...apiKeys];
  const others: string[] = [];
  for (const [name, value] of headers) {
    if (keyHeader.test(name)) all.push(value, value.replace(scheme, ''));
    else others.push(value);
  }
  const isSecret = (value: string): boolean => value.length >= leastSecret;
  const keys = all.filter(isSecret);
  return {
    keys,
    others: others.filter(isSecret),
    encoded: [...new Set(keys.flatMap(encodings))],
    marks: marksOf(keys),
  };
}

/** Encodes a key in hex and base64, alone and with bytes before it, as in `Basic` or after `Bearer`. */
function encodings(key: string): readonly string[] {
  const hex = Buffer.from(key).toString('hex');
  const inBase64 = [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.from(' '.repeat(before) + key);
    // Without the characters that also encode bits of neighbouring bytes.
    const text = bytes
      .toString('base64')
      .slice(Math.ceil((before * 4) / 3), Math.floor((bytes.length * 4) / 3));
    return [text, text.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [hex, hex.toUpperCase(), ...inBase64];
}

function marksOf(keys: readonly string[]): readonly KeyMark[] {
  const marked = [...new Set(keys)].filter((key) => key.length >= leastMarked && /\d/.test(key));
  // A key that contains another one is found through that one.
  return marked.filter((key) => !marked.some((other) => other !== key && key.includes(other))).map(markOf);
}

function markOf(key: string): KeyMark {
  const needle = needleOf(key);
  // Without its last byte, which is the first byte of the next character in the other byte order.
  return {
    needle,
    wide: Buffer.from(needle.whole.toString('utf8', needle.partAt), 'utf16le').subarray(0, -1),
  };
}

/** What a key gets from its groups. */
type KeyShare = Pick<Key, 'models' | 'groupLimits' | 'groupBudgets' | 'priceFactor'>;

/**
 * Creates a function that resolves the groups of a key in one config. The same groups give the very same models, limits
 * and prices each time. Groups that the config does not have open no models.
 * @param models sorted by name
 */
export function createKeyShares(
  groups: readonly Group[],
  models: ReadonlyMap<string, Model>,
): (names: readonly string[]) => KeyShare {
  const opened = new Map(groups.map((group) => [group.name, group.models]));
  const shared = new Map<string, KeyShare>();

  return (names) => {
    const identity = JSON.stringify([...new Set(names)].sort());
    const known = shared.get(identity);
    if (known !== undefined) return known;
    const own = groups.filter(({ name }) => names.includes(name));
    const factors = own.flatMap(({ priceFactor }) => priceFactor ?? []);
    const open = new Set(names.flatMap((name) => opened.get(name) ?? []));
    const made: KeyShare = {
      // A filtered map stays sorted.
      models: open.has('*') ? models : new Map([...models].filter(([name]) => open.has(name))),
      groupLimits: own.flatMap(({ name, limits }) => (limits === null ? [] : [{ group: name, limits }])),
      groupBudgets: own.flatMap(({ name, budget }) => (budget === null ? [] : [{ group: name, budget }])),
      priceFactor: factors.length === 0 ? 1 : Math.min(...factors),
    };
    shared.set(identity, made);
    return made;
  };
}
