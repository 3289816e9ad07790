import { randomBytes } from 'node:crypto';
import type { TargetOptions } from '../conversation/codec.js';
import { type ServiceTier, serviceTiers } from '../conversation/usage.js';
import type { ClientCertificate, EgressProxy } from '../upstream/origin.js';
import type { SteeringMember } from '../wire/routed-members.js';
import { usualConnections } from './descriptors.js';
import type { ConfigFiles } from './files.js';
import { parseHostPattern, parseNetwork, portRange } from './networks.js';
import { type Preset, presetOf } from './presets.js';
import type { PriceSettings } from './price-schema.js';
import { resolveProxy } from './proxy.js';
import type { RuleSettings } from './rules-schema.js';
import type { ConfigFile } from './schema.js';
import { resolveStore } from './store-settings.js';
import type {
  ConversationSettings,
  FetchSettings,
  KeptVideos,
  Key,
  ListenTls,
  Model,
  Price,
  PriceRates,
  PriceStep,
  Protocol,
  RateLimits,
  Snapshot,
  SocketSettings,
  SteppedRates,
  Target,
  Upstream,
} from './types.js';

export interface ResolvedUpstream
  extends Pick<
    Upstream,
    | 'name'
    | 'kind'
    | 'apiKeys'
    | 'keyHeader'
    | 'injectUsage'
    | 'onLeave'
    | 'responsesSocket'
    | 'fetchPrivate'
    | 'headers'
  > {
  /** Null for the simulator, whose port is known only when it runs. */
  readonly baseUrl: string | null;
  readonly query: Readonly<Record<string, string>>;
  /**
   * Additional headers, in lower case: those of client requests passed to the upstream, and those of its responses
   * passed to clients.
   */
  readonly forwardHeaders: readonly string[];
  readonly returnHeaders: readonly string[];
  /** Name of a preset, or null. */
  readonly preset: string | null;
  /** The rules in the file, or null. */
  readonly rules: RuleSettings | null;
  readonly tls: {
    readonly ca: string | null;
    readonly verify: boolean;
    readonly serverName: string | null;
    readonly clientCertificate: ClientCertificate | null;
  };
  readonly proxy: EgressProxy | null;
  readonly allowMembers: readonly SteeringMember[];
  readonly maxConnections: number;
  readonly maxWaiting: number;
}

/** A target's translation settings. */
type TranslationSettings = Omit<TargetOptions, 'model' | 'upstream' | 'streamUsage'>;

export interface ResolvedModel
  extends Pick<Model, 'name' | 'price' | 'limits' | 'budget' | 'hedgeMs' | 'tokens' | 'created'> {
  readonly protocols: readonly Protocol[];
  readonly targets: readonly (Pick<Target, 'model' | 'priority' | 'weight' | 'cost'> & {
    readonly upstream: string;
    /**
     * `true` for a chat upstream's target that takes responses calls as they come, `only` if it takes no other text
     * calls.
     */
    readonly responses: boolean | 'only';
    /** Null if the config does not set it. */
    readonly images: Target['images'] | null;
    readonly translation: TranslationSettings;
    readonly preset: string | null;
    readonly rules: RuleSettings | null;
    /** Null to use the model's. */
    readonly firstTokenMs: number | null;
  })[];
  readonly firstTokenMs: number | null;
}

export type ResolvedKey = Pick<
  Key,
  'id' | 'hash' | 'groups' | 'expiresAt' | 'limits' | 'budget' | 'mayRoute'
>;

/**
 * A checked config, with every default filled in and every named file read. It is plain JSON: the primary sends it to
 * its workers, and each of them builds the same snapshot from it.
 */
export interface ResolvedConfig
  extends Omit<
    Snapshot,
    'translates' | 'passedHeaders' | 'returnedHeaders' | 'secret' | 'upstreams' | 'models' | 'keys' | 'keyIds'
  > {
  /** `given` if it is in the file. Otherwise generated for this start. */
  readonly secret: { readonly text: string; readonly given: boolean };
  readonly upstreams: readonly ResolvedUpstream[];
  readonly models: readonly ResolvedModel[];
  readonly keys: readonly ResolvedKey[];
  /** The operators' listener. Null if there is none. */
  readonly admin: AdminSettings | null;
}

export interface AdminSettings extends AdminTokens {
  readonly host: string;
  readonly port: number;
}

/** Tokens with which operators and their tools sign in. */
export interface AdminTokens {
  /** Permits everything. */
  readonly token: string;
  /** Permits everything that changes nothing. Null if there is none. */
  readonly readToken: string | null;
  /** Permits only the metrics. Null if there is none. */
  readonly metricsToken: string | null;
}

/** A key may by default hold one part in this many of what a worker may hold, for bodies and for WebSockets. */
const keyShare = 4;

/** Defaults of the config file. */
export const defaults = {
  host: '127.0.0.1',
  port: 8080,
  adminPort: 9090,
  vendors: { vendorc: ['anthropic'], vendorg: ['goog'], vendork: ['kling'], vendorj: ['jimeng'] },
  limits: {
    bodyBytes: 33_554_432,
    bodyValues: 500_000,
    uploadBytes: 536_870_912,
    headerBytes: 16_384,
    bufferedBytes: 1_073_741_824,
    leastBodyRate: 1024,
  },
  timeouts: {
    bodyMs: 120_000,
    bodyGraceMs: 10_000,
    keepAliveMs: 15_000,
    connectMs: 3000,
    firstByteMs: 120_000,
    idleMs: 60_000,
    totalMs: 900_000,
    drainMs: 600_000,
    unreadyMs: 0,
    orphanMs: 600_000,
  },
  routing: {
    failures: 5,
    failureRate: 0.5,
    minimumCalls: 20,
    windowMs: 10_000,
    openMs: 2000,
    maxOpenMs: 60_000,
    affinity: true,
    loadFactor: 1.25,
    retries: 2,
  },
  sockets: {
    messageBytes: 16_777_216,
    waitingBytes: 4_194_304,
    perKey: 100,
    heldBytes: 268_435_456,
    idleMs: 120_000,
    pingMs: 30_000,
    sessionMs: 3_600_000,
    responses: true,
    historyBytes: 4_194_304,
  },
  fetch: {
    ports: [
      [80, 80],
      [443, 443],
    ],
    denyNetworks: [],
    denyHosts: [],
    proxy: null,
  },
  outage: { budgets: 'closed', rates: 'open' },
  usage: { ledger: true, lineDays: 30, sumDays: 400 },
  videos: { days: 7, bytes: 107_374_182_400, fileBytes: 2_147_483_648 },
  unpriced: 'refuse',
  conversations: { hours: 24, keyBytes: 67_108_864, bytes: 1_073_741_824, recordBytes: 8_388_608 },
  injectUsage: true,
  onLeave: 'drain',
  translation: {
    maxTokens: 4096,
    maxTokensField: 'max_completion_tokens',
    thinking: 'budget',
    jsonSchema: true,
    customTools: false,
    topK: false,
    promptCaching: true,
    cacheBreakpoints: false,
    threads: true,
    unsignedThinking: false,
    systemMessages: false,
    preservedThinking: false,
    forcedCalls: true,
    encryptedReasoning: false,
    search: null,
    hostedTools: 'drop',
  },
  defaultModels: { moderations: 'omni-moderation-latest' },
  maxConnections: usualConnections,
  maxWaiting: 10_000,
} as const;

function lowerCase(names: readonly string[] = []): readonly string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))];
}

/** Fills in the defaults of the WebSocket settings. */
function socketSettings(given: ConfigFile['sockets'] = {}): SocketSettings {
  const { messageBytes = defaults.sockets.messageBytes } = given;
  // Several of the largest messages must fit.
  const heldBytes = given.heldBytes ?? Math.max(defaults.sockets.heldBytes, keyShare * messageBytes);
  const share = Math.max(messageBytes, Math.floor(heldBytes / keyShare));
  return { ...defaults.sockets, heldBytesPerKey: share, ...given, heldBytes };
}

/**
 * Fills in the defaults of a config file that passed every check.
 * @param created Unix seconds for models that no running config knows yet
 */
export function resolveConfig(file: ConfigFile, files: ConfigFiles, created: number): ResolvedConfig {
  const tls = file.listen?.tls;
  return {
    demo: false,
    listen: {
      host: file.listen?.host ?? defaults.host,
      port: file.listen?.port ?? defaults.port,
      tls: tls === undefined ? null : resolveTls(tls, files),
      publicUrl: file.listen?.publicUrl?.replace(/\/+$/, '') ?? null,
      trustedProxies: file.listen?.trustedProxies?.flatMap((text) => parseNetwork(text) ?? []) ?? null,
      cors: file.listen?.cors === undefined ? null : { maxAgeSeconds: 7200, ...file.listen.cors },
    },
    workers: file.workers ?? 0,
    vendors: { ...defaults.vendors, ...file.vendors },
    limits: byteLimits(file.limits),
    timeouts: { ...defaults.timeouts, ...file.timeouts },
    routing: { ...defaults.routing, ...file.routing },
    sockets: socketSettings(file.sockets),
    fetch: resolveFetch(file.fetch ?? {}, files),
    store: resolveStore(file.store ?? { kind: 'embedded' }, files),
    outage: { ...defaults.outage, ...file.outage },
    usage: { ...defaults.usage, ...file.usage },
    videos: resolveVideos(file, files),
    unpriced: file.unpriced ?? defaults.unpriced,
    conversations: resolveConversations(file),
    secret: file.secret === undefined ? madeUpSecret() : { text: file.secret, given: true },
    defaultModels: { ...defaults.defaultModels, ...file.defaultModels },
    upstreams: Object.entries(file.upstreams).map(([name, upstream]) =>
      resolveUpstream(name, upstream, files),
    ),
    models: Object.entries(file.models).map(([name, model]) => ({
      name,
      protocols: model.protocols,
      targets: model.targets.map((target) => ({
        upstream: target.upstream,
        model: target.model ?? name,
        priority: target.priority ?? 0,
        weight: target.weight ?? 1,
        responses: target.responses ?? false,
        images: target.images ?? null,
        translation: resolveTranslation(
          presetOf(target.preset ?? file.upstreams[target.upstream]?.preset),
          target.translation,
        ),
        preset: target.preset ?? null,
        rules: target.rules ?? null,
        firstTokenMs: target.firstTokenMs ?? null,
        cost: priceAt([target], target.cost, file),
      })),
      price: priceAt(model.targets, model.price, file),
      limits: resolveLimits(model.limits),
      budget: model.budget ?? null,
      firstTokenMs: model.firstTokenMs ?? null,
      hedgeMs: model.hedgeMs ?? null,
      tokens: { input: model.inputTokens ?? null, output: model.outputTokens ?? null },
      created,
    })),
    groups: Object.entries(file.groups).map(([name, group]) => ({
      name,
      models: group.models,
      limits: resolveLimits(group.limits),
      budget: group.budget ?? null,
      priceFactor: group.priceFactor ?? null,
      shareVideos: group.shareVideos ?? false,
    })),
    keys: file.keys.map((key) => ({
      id: key.id,
      hash: key.hash.slice('sha256:'.length).toLowerCase(),
      groups: key.groups,
      expiresAt: key.expiresAt === undefined ? null : Date.parse(key.expiresAt),
      limits: resolveLimits(key.limits),
      budget: key.budget ?? null,
      mayRoute: key.mayRoute ?? false,
    })),
    admin:
      file.admin === undefined
        ? null
        : {
            host: defaults.host,
            port: defaults.adminPort,
            readToken: null,
            metricsToken: null,
            ...file.admin,
          },
  };
}

function resolveUpstream(
  name: string,
  upstream: ConfigFile['upstreams'][string],
  files: ConfigFiles,
): ResolvedUpstream {
  return {
    name,
    kind: upstream.kind,
    baseUrl: upstream.baseUrl ?? null,
    apiKeys: upstream.apiKeys ?? [],
    keyHeader: upstream.keyHeader ?? null,
    query: upstream.query ?? {},
    headers: Object.entries(upstream.headers ?? {}).map(([field, value]) => [field.toLowerCase(), value]),
    forwardHeaders: lowerCase(upstream.forwardHeaders),
    returnHeaders: lowerCase(upstream.returnHeaders),
    preset: upstream.preset ?? null,
    rules: upstream.rules ?? null,
    tls: {
      ca: upstream.tls?.ca === undefined ? null : files.certificate(upstream.tls.ca).text,
      verify: upstream.tls?.verify ?? true,
      serverName: upstream.tls?.serverName ?? null,
      clientCertificate: clientCertificate(upstream.tls ?? {}, files),
    },
    proxy: proxyOf(upstream, files),
    injectUsage: upstream.injectUsage ?? defaults.injectUsage,
    onLeave: upstream.onLeave ?? defaults.onLeave,
    responsesSocket: upstream.responsesSocket ?? false,
    fetchPrivate: upstream.fetchPrivate ?? false,
    allowMembers: upstream.allowMembers ?? [],
    maxConnections: upstream.maxConnections ?? defaults.maxConnections,
    maxWaiting: upstream.maxWaiting ?? defaults.maxWaiting,
  };
}

function resolveVideos({ videos }: ConfigFile, files: ConfigFiles): KeptVideos | null {
  if (videos === undefined) return null;
  return { ...defaults.videos, ...videos, folder: files.absolute(videos.folder) };
}

function resolveConversations({ conversations = {} }: ConfigFile): ConversationSettings | null {
  if (conversations === 'off') return null;
  return { ...defaults.conversations, ...conversations };
}

function resolveTls(tls: { readonly cert: string; readonly key: string }, files: ConfigFiles): ListenTls {
  const [cert, key] = [files.absolute(tls.cert), files.absolute(tls.key)];
  return { cert, key, fingerprint: files.fingerprint([cert, key]) };
}

type FileTls = NonNullable<ConfigFile['upstreams'][string]['tls']>;

function clientCertificate({ cert, key }: FileTls, files: ConfigFiles): ClientCertificate | null {
  if (cert === undefined || key === undefined) return null;
  return { cert: files.certificate(cert).text ?? '', key: files.privateKey(key).text ?? '' };
}

function proxyOf(
  { proxy, proxyCa }: { readonly proxy?: string; readonly proxyCa?: string },
  files: ConfigFiles,
): EgressProxy | null {
  if (proxy === undefined) return null;
  return resolveProxy(proxy, proxyCa === undefined ? null : files.certificate(proxyCa).text);
}

function resolveFetch(fetch: NonNullable<ConfigFile['fetch']>, files: ConfigFiles): FetchSettings {
  const { ports, denyNetworks, denyHosts } = fetch;
  return {
    proxy: proxyOf(fetch, files),
    ports: ports?.map(portRange) ?? defaults.fetch.ports,
    denyNetworks: denyNetworks?.flatMap((text) => parseNetwork(text) ?? []) ?? [],
    denyHosts: denyHosts?.flatMap((text) => parseHostPattern(text) ?? []) ?? [],
  };
}

type FileModel = ConfigFile['models'][string];

function resolveLimits(limits: FileModel['limits']): RateLimits | null {
  if (limits === undefined) return null;
  return { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, ...limits };
}

/** Fills in the defaults of the body limits. */
function byteLimits(given: ConfigFile['limits'] = {}): Snapshot['limits'] {
  const limits = { ...defaults.limits, ...given };
  // The largest body must fit, however little a worker may hold.
  const share = Math.max(limits.bodyBytes, Math.floor(limits.bufferedBytes / keyShare));
  return { bufferedBytesPerKey: share, ...limits };
}

/** Generates a secret, which lasts as long as this process. */
function madeUpSecret(): ResolvedConfig['secret'] {
  return { text: randomBytes(32).toString('base64url'), given: false };
}

type FileTranslation = NonNullable<ConfigFile['models'][string]['targets'][number]['translation']>;

function resolveTranslation(preset: Preset | null, given: FileTranslation = {}): TranslationSettings {
  return { ...defaults.translation, ...preset?.translation, ...given };
}

/** Rates in a file. Those that are missing follow from others. */
type StatedRates = Partial<PriceRates>;
type StatedSteps = NonNullable<PriceSettings['steps']>;

function priceAt(
  targets: FileModel['targets'],
  price: PriceSettings | undefined,
  { upstreams }: ConfigFile,
): Price | null {
  if (price === undefined) return null;
  // There, fast is a speed, and has nothing to do with the priority tier.
  return resolvePrice(
    price,
    targets.some(({ upstream }) => upstreams[upstream]?.kind === 'messages'),
  );
}

/**
 * Fills in a price's defaults. A part without a price of its own costs as much as what it is a part of.
 * @param isFastOther whether `fast` may be another tier than OpenAI's, which its answers call `priority` as well
 */
export function resolvePrice(
  { images, seconds, steps, tiers, geos, ...stated }: PriceSettings,
  isFastOther = false,
): Price {
  return {
    ...steppedRates(stated, steps),
    images: (images ?? []).map(({ size = null, quality = null, usd }) => ({ size, quality, usd })),
    seconds: seconds ?? [],
    tiers: resolveTiers(stated, tiers ?? {}, isFastOther),
    geos: geos ?? {},
  };
}

function resolveTiers(
  stated: StatedRates,
  tiers: NonNullable<PriceSettings['tiers']>,
  isFastOther: boolean,
): Price['tiers'] {
  const resolved: Partial<Record<ServiceTier, number | SteppedRates>> = {};
  for (const name of serviceTiers) {
    const tier = name === 'standard' ? undefined : tiers[name];
    if (tier === undefined) continue;
    if (typeof tier === 'number') resolved[name] = tier;
    else {
      const { steps, ...rates } = tier;
      resolved[name] = steppedRates({ ...stated, ...rates }, steps);
    }
  }
  // OpenAI has renamed its priority tier: its answers say `fast` for newer models, and `priority` for older ones.
  const fast = resolved.fast ?? resolved.priority;
  return fast === undefined || isFastOther ? resolved : { ...resolved, fast };
}

function steppedRates(stated: StatedRates, steps: StatedSteps = []): SteppedRates {
  return { rates: ratesOf(stated), steps: stepsOf(stated, steps) };
}

function stepsOf(stated: StatedRates, steps: StatedSteps): readonly PriceStep[] {
  return steps
    .map(({ aboveInput, ...rates }) => ({ above: aboveInput, rates: ratesOf({ ...stated, ...rates }) }))
    .sort((a, b) => a.above - b.above);
}

function ratesOf(stated: StatedRates): PriceRates {
  const { input = 0, output = 0 } = stated;
  const { cacheWritten = input, audioInput = input, imageInput = input } = stated;
  return {
    input,
    output,
    cached: stated.cached ?? input,
    cacheWritten,
    cacheWrittenHour: stated.cacheWrittenHour ?? cacheWritten,
    audioInput,
    audioOutput: stated.audioOutput ?? output,
    cachedAudio: stated.cachedAudio ?? stated.cached ?? audioInput,
    imageInput,
    videoInput: stated.videoInput ?? input,
    imageOutput: stated.imageOutput ?? output,
    cachedImage: stated.cachedImage ?? stated.cached ?? imageInput,
    reasoning: stated.reasoning ?? output,
    characters: stated.characters ?? 0,
    perSearch: stated.perSearch ?? 0,
    perCall: stated.perCall ?? 0,
    perSecond: stated.perSecond ?? 0,
  };
}
