import type { TargetOptions } from '../conversation/codec.js';
import type { TextProtocolName } from '../conversation/request.js';
import type { ModelTokens, ServiceTier } from '../conversation/usage.js';
import type { EgressProxy, Origin } from '../upstream/origin.js';
import type { Needle } from '../wire/json-skip.js';
import type { MemberRule } from '../wire/member-edits.js';
import type { SteeringMember } from '../wire/routed-members.js';
import type { Network } from './networks.js';
import type { PriceSettings } from './price-schema.js';
import type { RuleSettings } from './rules-schema.js';
import type { ConfigFile } from './schema.js';
import type { keyHeaders, protocols, upstreamKinds } from './words.js';

/** A section of the config file with all defaults filled in. Its schema describes the settings. */
type Filled<Section extends keyof ConfigFile> = Readonly<
  Required<Exclude<ConfigFile[Section], string | undefined>>
>;

/** A setting of a target, as in the file. */
type TargetSettings = ConfigFile['models'][string]['targets'][number];

export type Protocol = (typeof protocols)[number];
export type UpstreamKind = (typeof upstreamKinds)[number];
export type KeyHeader = (typeof keyHeaders)[number];

/** Secrets of the gateway that an upstream knows, and that must not reach clients. */
export interface OwnSecrets {
  /** API keys, and headers with names of secrets. Only the upstream knows them. */
  readonly keys: readonly string[];
  /** Other headers of the config. Their values are not necessarily secret. */
  readonly others: readonly string[];
  /** The keys in base64 and hexadecimal, to mask them in errors. */
  readonly encoded: readonly string[];
  /** Keys for which whole answers are searched: those long enough not to occur in text by chance. */
  readonly marks: readonly KeyMark[];
}

/** A key, prepared for searching answers. */
export interface KeyMark {
  readonly needle: Needle;
  /** Its end from that part on, in UTF-16 of either byte order. */
  readonly wide: Buffer;
}

/** How a body switches thinking on or off, if not by an effort. */
export type ThinkingForm = NonNullable<RuleSettings['thinking']>;

/** Changes to the bodies that are sent to a target. */
export interface TargetRules {
  /** Edits of members. No two conflict. */
  readonly members: readonly MemberRule[];
  /** Replacements for efforts, in lower case. */
  readonly efforts: ReadonlyMap<string, string>;
  /** Replacements for message roles. */
  readonly roles: ReadonlyMap<string, string>;
  /** The target refuses sampling parameters. */
  readonly dropsSampling: boolean;
  readonly thinking: ThinkingForm | 'never_off' | null;
  /** The target refuses assistant messages without reasoning. */
  readonly fillsReasoning: boolean;
}

/** How the headers of a client are treated, beside those that are set. Names are lower-case. */
export interface ClientHeaders {
  /** Headers not to pass on, since the config sets or drops them. */
  readonly without: ReadonlySet<string>;
  /** At least one of those would otherwise be passed on. */
  readonly editsForwarded: boolean;
  /** Headers to pass on in addition to the standard ones. */
  readonly pass: ReadonlySet<string>;
  /** Features that are added to and removed from the client's beta headers. */
  readonly addedBetas: readonly string[];
  readonly droppedBetas: ReadonlySet<string>;
}

/** What the config sets in the head of a request to an upstream. */
export interface ConfiguredHeaders {
  /** Lower-case names and values. */
  readonly headers: readonly (readonly [string, string])[];
  /** Null if the standard headers are passed on unchanged. */
  readonly clientHeaders: ClientHeaders | null;
}

/** A server that answers calls: its origin, base path and credentials. */
export interface Upstream extends ConfiguredHeaders {
  readonly name: string;
  readonly kind: UpstreamKind;
  readonly origin: Origin;
  /** Path prefix of the base URL without a trailing slash: `/v1`, or empty. */
  readonly basePath: string;
  /** Query of every request to it, such as `api-version=2024-10-21`, or empty. */
  readonly baseQuery: string;
  /** Request usage on streams if the client did not, and hide it from the client. */
  readonly injectUsage: boolean;
  /** What happens to a call whose client disconnects: read on for its usage, within bounds, or cancel. */
  readonly onLeave: NonNullable<ConfigFile['upstreams'][string]['onLeave']>;
  /** The upstream also accepts responses over a WebSocket. */
  readonly responsesSocket: boolean;
  /** Media for it may be fetched from private addresses. */
  readonly fetchPrivate: boolean;
  /** Additional response headers to pass on, with their first letters; null for none. */
  readonly returnHeaders: { readonly names: ReadonlySet<string>; readonly initials: number } | null;
  /** Body members that are passed on although they can redirect the call to another model. */
  readonly allowMembers: ReadonlySet<SteeringMember>;
  readonly apiKeys: readonly string[];
  /** Header for the API key; null for the default of its kind. */
  readonly keyHeader: KeyHeader | null;
  readonly secrets: OwnSecrets;
}

export interface Target extends ConfiguredHeaders {
  readonly upstream: Upstream;
  /** The model's name at the upstream. */
  readonly model: string;
  /** Protocols whose calls are passed to the target untouched. */
  readonly native: ReadonlySet<Protocol>;
  /** Protocol into which calls of the other text protocols are translated; null if that is not possible. */
  readonly translatesTo: TextProtocolName | null;
  /** Settings of translations for the target. */
  readonly translation: TargetOptions;
  /** Changes to bodies for the target; null for none. */
  readonly rules: TargetRules | null;
  /** Changes to bodies that may switch thinking off, which the model refuses; null if it accepts that. */
  readonly rulesForOff: TargetRules | null;
  /** How the target accepts calls for images. */
  readonly images: NonNullable<TargetSettings['images']>;
  /** Lower is tried first. */
  readonly priority: number;
  readonly weight: number;
  /** Milliseconds without content of a stream after which the next target is tried; null for never. */
  readonly firstTokenMs: number | null;
  /** What the operator pays for its calls; null if unknown. */
  readonly cost: Price | null;
}

export interface Model {
  readonly name: string;
  readonly protocols: ReadonlySet<Protocol>;
  /** Sorted by priority. */
  readonly targets: readonly Target[];
  /** Targets with separate image endpoints, which also serve text calls that request an image. */
  readonly drawing: readonly Target[];
  /** Unix seconds since which the model has been in the config. */
  readonly created: number;
  /** Null if nothing is charged. */
  readonly price: Price | null;
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
  /** Milliseconds without an answer after which a call is also sent to the next target; null for never. */
  readonly hedgeMs: number | null;
  /** What model lists show; null for what the config does not set. */
  readonly tokens: ModelTokens;
}

/** Prices of the counted units of a call, in USD; for tokens, of a million. */
export type PriceRates = Readonly<
  Required<Omit<PriceSettings, 'images' | 'seconds' | 'steps' | 'tiers' | 'geos'>>
>;

/** Rates for calls with more than `above` input tokens. */
export interface PriceStep {
  readonly above: number;
  readonly rates: PriceRates;
}

/** Rates by the length of the input. Steps are in ascending order. */
export interface SteppedRates {
  readonly rates: PriceRates;
  readonly steps: readonly PriceStep[];
}

/** Price of an image by size and quality, instead of `perCall`. Null matches any. */
export interface ImagePrice {
  readonly size: string | null;
  readonly quality: string | null;
  readonly usd: number;
}

/** Prices of calls. */
export interface Price extends SteppedRates {
  readonly images: readonly ImagePrice[];
  /** Prices of videos by resolution, instead of `perSecond`. */
  readonly seconds: NonNullable<PriceSettings['seconds']>;
  /** By service tier: a factor on all rates, or separate rates. Tiers not listed use the base rates. */
  readonly tiers: Readonly<Partial<Record<ServiceTier, number | SteppedRates>>>;
  /** Factors on token prices by the region that the upstream reports. */
  readonly geos: Readonly<Record<string, number>>;
}

type LimitsOfFile = NonNullable<ConfigFile['models'][string]['limits']>;

/** Null means no limit. */
export type RateLimits = { readonly [Name in keyof LimitsOfFile]-?: NonNullable<LimitsOfFile[Name]> | null };

/** Calendar periods in UTC; a week begins on Monday. */
export type Budget = Readonly<NonNullable<ConfigFile['models'][string]['budget']>>;

/** What the keys of a group may do. */
export interface Group {
  readonly name: string;
  /** Names of models; `*` for all of them. */
  readonly models: readonly string[];
  readonly limits: RateLimits | null;
  /** Limit for the cost of all calls of its keys. */
  readonly budget: Budget | null;
  /** Factor on the charges for calls of its keys; null for none. */
  readonly priceFactor: number | null;
  /** Keys of the group see each other's video tasks. */
  readonly shareVideos: boolean;
}

/** How targets are chosen, and when the breaker of one opens. */
export type RoutingSettings = Filled<'routing'>;

export interface Key {
  readonly id: string;
  /** SHA-256 of the key, lower-case hex. */
  readonly hash: string;
  readonly groups: readonly string[];
  /** Every model that the key's groups permit, by name, sorted by name. */
  readonly models: ReadonlyMap<string, Model>;
  /** Unix milliseconds, or null for never. */
  readonly expiresAt: number | null;
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
  /** Limits that its calls share with other keys. */
  readonly groupLimits: readonly { readonly group: string; readonly limits: RateLimits }[];
  /** Budgets that its calls share with other keys. */
  readonly groupBudgets: readonly { readonly group: string; readonly budget: Budget }[];
  /** Factor on the charges for its calls: the lowest of its groups. */
  readonly priceFactor: number;
  /** Its calls may select and exclude targets. */
  readonly mayRoute: boolean;
  /**
   * Cache of `poolsOfKey` of `limits/pools`, which is its only reader. Its type is not visible here, since the config
   * does not depend on how limits are implemented.
   */
  pools?: object | null;
}

export type Timeouts = Filled<'timeouts'>;

/** Settings of WebSockets. */
export type SocketSettings = Filled<'sockets'>;

/** What may be fetched by URL, beyond the rule for public addresses. */
export interface FetchSettings {
  /** First and last port of each permitted range. */
  readonly ports: readonly (readonly [number, number])[];
  /** Networks and hosts that are never fetched from. `*.name` stands for all below a name. */
  readonly denyNetworks: readonly Network[];
  readonly denyHosts: readonly string[];
  /** Proxy for everything that is not at the origin of an upstream; null for none. */
  readonly proxy: EgressProxy | null;
}

/** Families of headers in which SDKs read the limits of their key. */
export type RateFamily = 'chat' | 'messages';

/** Real vendor words beside the neutral ones: `{vendorc: ['anthropic'], …}`. */
export type VendorWords = { readonly [Vendor in keyof Filled<'vendors'>]: readonly string[] };

/** The store of records that outlive a process. Plain data. A password in it is never shown. */
export type StoreSettings = EmbeddedStoreSettings | PostgresStoreSettings;

interface EmbeddedStoreSettings {
  readonly kind: 'embedded';
  /** Absolute path of a folder, which is created when first needed. */
  readonly path: string;
  /** For how many days tasks are kept. */
  readonly taskDays: number;
}

/** Address of a server. */
export interface PostgresPlace {
  /** Name or address, or the absolute path of the folder of its socket. */
  readonly host: string;
  readonly port: number;
}

export interface PostgresStoreSettings extends PostgresPlace {
  readonly kind: 'postgres';
  /** Further addresses. The first of all, in their order, that accepts changes is used. */
  readonly others: readonly PostgresPlace[];
  readonly database: string;
  readonly username: string;
  readonly password: string | null;
  /** `on` does not verify the server's certificate. */
  readonly tls: 'off' | 'on' | 'verified';
  /** Database schema of the tables; letters, digits and underscores. */
  readonly schema: string;
  /** Timeout of a call to the database. */
  readonly timeoutMs: number;
  /** For how many days tasks are kept. */
  readonly taskDays: number;
}

/** How conversations are kept, for upstreams that do not keep them. Bytes are counted as in the store. */
export type ConversationSettings = Filled<'conversations'>;

/** TLS settings of the listener. */
export interface ListenTls {
  /** Absolute paths of PEM files. */
  readonly cert: string;
  readonly key: string;
  /** Digest of the files' contents, since their names stay when a certificate is renewed. */
  readonly fingerprint: string;
}

/** What the store records of finished calls. */
export type UsageSettings = Filled<'usage'>;

/** Where the videos of finished tasks are kept, and for how long. The folder is an absolute path. */
export type KeptVideos = Filled<'videos'>;

export type UnpricedRule = NonNullable<ConfigFile['unpriced']>;

/** The running config. Frozen, replaced as a whole on reload, and kept by each call from start to end. */
export interface Snapshot {
  readonly demo: boolean;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    readonly tls: ListenTls | null;
    /** Base URL for clients, without a trailing slash; null to take it from their requests. */
    readonly publicUrl: string | null;
    /** Proxies whose forwarded client addresses are trusted; null if addresses are not read. */
    readonly trustedProxies: readonly Network[] | null;
    /** Allowed CORS origins, `*` for all; null for none. */
    readonly cors: { readonly origins: readonly string[]; readonly maxAgeSeconds: number } | null;
  };
  /** 0 means one per core. */
  readonly workers: number;
  readonly vendors: VendorWords;
  readonly limits: Filled<'limits'>;
  readonly timeouts: Timeouts;
  readonly routing: RoutingSettings;
  readonly sockets: SocketSettings;
  readonly fetch: FetchSettings;
  readonly store: StoreSettings;
  readonly outage: Filled<'outage'>;
  readonly usage: UsageSettings;
  /** Null if no videos are kept. */
  readonly videos: KeptVideos | null;
  readonly unpriced: UnpricedRule;
  /** Null if nothing is kept. */
  readonly conversations: ConversationSettings | null;
  /** Clients may carry data sealed by the gateway, since some model's calls are translated or compacted here. */
  readonly translates: boolean;
  /** Additional client headers that some upstream gets. Lower-case names. */
  readonly passedHeaders: readonly string[];
  /** Additional response headers of some upstream that clients get. Lower-case names. */
  readonly returnedHeaders: readonly string[];
  /** Key that seals data which clients return to the gateway. */
  readonly secret: string;
  /** Models for calls without one. */
  readonly defaultModels: Readonly<Partial<Record<Protocol, string>>>;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly models: ReadonlyMap<string, Model>;
  readonly groups: readonly Group[];
  /** By SHA-256, lower-case hex. */
  readonly keys: KeysByName;
  readonly keyIds: KeysByName;
}

/** The methods that are needed of a map of all keys, which may be a hundred thousand. */
export interface KeysByName {
  readonly size: number;
  get(name: string): Key | undefined;
  has(name: string): boolean;
  values(): Iterable<Key>;
}
