import type { TargetOptions } from '../conversation/codec.js';
import type { TextProtocolName } from '../conversation/request.js';
import type { ServiceTier } from '../conversation/usage.js';
import type { EgressProxy, Origin } from '../upstream/origin.js';
import type { Needle } from '../wire/json-skip.js';
import type { MemberRule } from '../wire/member-rule.js';
import type { SteeringMember } from '../wire/steering-members.js';
import type { Network } from './networks.js';
import type { PriceSettings } from './price-schema.js';
import type { RuleSettings } from './rules-schema.js';
import type { ConfigFile } from './schema.js';
import type { keyHeaders, protocols, upstreamKinds } from './words.js';

/** A section of the config file with every default filled in: its schema says what each setting is. */
type Filled<Section extends keyof ConfigFile> = Readonly<
  Required<Exclude<ConfigFile[Section], string | undefined>>
>;

/** Of a target, as the file has it. */
type TargetSettings = ConfigFile['models'][string]['targets'][number];

export type Protocol = (typeof protocols)[number];
export type UpstreamKind = (typeof upstreamKinds)[number];
export type KeyHeader = (typeof keyHeaders)[number];

/** What of the gateway's own an upstream knows, and its clients must not. */
export interface OwnSecrets {
  /** Keys, and headers that are called like one. Nobody but the upstream can name them. */
  readonly keys: readonly string[];
  /** Other headers of the config, which may carry anything, and whose values others may know. */
  readonly others: readonly string[];
  /** The keys in base64 and hex, for errors. */
  readonly encoded: readonly string[];
  /** By these whole answers are searched for keys, those that no ordinary text has by chance. */
  readonly marks: readonly KeyMark[];
}

/** A key as answers are searched for it. */
export interface KeyMark {
  readonly needle: Needle;
  /** Its end from that part on, in UTF-16 of either byte order. */
  readonly wide: Buffer;
}

/** How a body tells a model whether to think, where that is not by a word for its effort. */
export type ThinkingForm = NonNullable<RuleSettings['thinking']>;

/** What is changed in the bodies that a target gets. */
export interface TargetRules {
  /** No two of them clash. */
  readonly members: readonly MemberRule[];
  /** Words for efforts, in lower case, and what the target calls them. */
  readonly efforts: ReadonlyMap<string, string>;
  /** The same for roles of messages. */
  readonly roles: ReadonlyMap<string, string>;
  /** It refuses settings of how the next token is drawn. */
  readonly dropsSampling: boolean;
  readonly thinking: ThinkingForm | 'never_off' | null;
  /** It refuses messages of the assistant without reasoning. */
  readonly fillsReasoning: boolean;
}

/** What becomes of the headers that a client sends, beside those that are set for it. Names are lower-case. */
export interface ClientHeaders {
  /** Not passed: the config sets them, or leaves them out. */
  readonly without: ReadonlySet<string>;
  /** Some of those is one that the upstream would get else. */
  readonly editsForwarded: boolean;
  /** Passed, though they are no headers that every upstream gets. */
  readonly pass: ReadonlySet<string>;
  /** Features that the client's lists of betas have in any case, and those that they never have. */
  readonly addedBetas: readonly string[];
  readonly droppedBetas: ReadonlySet<string>;
}

/** What the head of a request to an upstream has of its config. */
export interface ConfiguredHeaders {
  /** Lower-case names and values. */
  readonly headers: readonly (readonly [string, string])[];
  /** Null where all that is passed at all is passed as it came. */
  readonly clientHeaders: ClientHeaders | null;
}

/** One place that answers: an origin, the path under it, and how to sign in. */
export interface Upstream extends ConfiguredHeaders {
  readonly name: string;
  readonly kind: UpstreamKind;
  readonly origin: Origin;
  /** Path prefix of the base URL without a trailing slash: `/v1`, or empty. */
  readonly basePath: string;
  /** What the query of every request to it has: `api-version=2024-10-21`, or empty. */
  readonly baseQuery: string;
  /** Ask for a stream's usage where the client did not, and hide it from the client again. */
  readonly injectUsage: boolean;
  /** What becomes of a call there whose client leaves: it is read on for its usage, within bounds, or cancelled. */
  readonly onLeave: NonNullable<ConfigFile['upstreams'][string]['onLeave']>;
  /** Responses may be asked for over a WebSocket, too. */
  readonly responsesSocket: boolean;
  /** Media for it may be fetched from private addresses. */
  readonly fetchPrivate: boolean;
  /** Headers of its answers that are handed on beside those that always are, and their first letters; null for none. */
  readonly returnHeaders: { readonly names: ReadonlySet<string>; readonly initials: number } | null;
  /** Members of bodies that it may be sent though they could lead it elsewhere. */
  readonly allowMembers: ReadonlySet<SteeringMember>;
  readonly apiKeys: readonly string[];
  /** Where it looks for a key; null where all of its kind do. */
  readonly keyHeader: KeyHeader | null;
  readonly secrets: OwnSecrets;
}

export interface Target extends ConfiguredHeaders {
  readonly upstream: Upstream;
  /** The model's name at the upstream. */
  readonly model: string;
  /** Protocols whose calls the target takes as they come. */
  readonly native: ReadonlySet<Protocol>;
  /** The protocol into which calls of the other text protocols are translated; null where none can be. */
  readonly translatesTo: TextProtocolName | null;
  /** What a translation for it has to know of it. */
  readonly translation: TargetOptions;
  /** What is changed in bodies for it; null for nothing. */
  readonly rules: TargetRules | null;
  /** The same for a body that may turn thinking off, which its model refuses; null where it takes that. */
  readonly rulesForOff: TargetRules | null;
  /** How it takes calls for images. */
  readonly images: NonNullable<TargetSettings['images']>;
  /** Lower is tried first. */
  readonly priority: number;
  readonly weight: number;
  /** It is given up for the next one when it has sent nothing of a stream after so long; null for never. */
  readonly firstTokenMs: number | null;
  /** What its calls cost whoever runs the gateway; null where that is not known. */
  readonly cost: Price | null;
}

export interface Model {
  readonly name: string;
  readonly protocols: ReadonlySet<Protocol>;
  /** Sorted by priority. */
  readonly targets: readonly Target[];
  /** Those of the targets that make images at endpoints of their own, also for a text that asks for one. */
  readonly drawing: readonly Target[];
  /** Unix seconds: when this catalogue first knew the model. */
  readonly created: number;
  /** Null where nothing is charged. */
  readonly price: Price | null;
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
  /** A call is sent to the next target, too, when nothing of its answer has come after so long; null for never. */
  readonly hedgeMs: number | null;
  /** What lists of models say of it; null for what the config does not. */
  readonly tokens: TokenLimits;
}

/** How many tokens a model takes and gives at most. */
export interface TokenLimits {
  readonly input: number | null;
  readonly output: number | null;
}

/** What each of the things that are counted of a call costs, in USD: of tokens a million. */
export type PriceRates = Readonly<
  Required<Omit<PriceSettings, 'images' | 'seconds' | 'steps' | 'tiers' | 'geos'>>
>;

/** What holds for calls of more input tokens than `above`. */
export interface PriceStep {
  readonly above: number;
  readonly rates: PriceRates;
}

/** Rates by the length of the input; the steps in ascending order. */
export interface SteppedRates {
  readonly rates: PriceRates;
  readonly steps: readonly PriceStep[];
}

/** The price of an image of a size and quality, or of any where one is null, in place of `perCall`. */
export interface ImagePrice {
  readonly size: string | null;
  readonly quality: string | null;
  readonly usd: number;
}

/** What calls cost. */
export interface Price extends SteppedRates {
  readonly images: readonly ImagePrice[];
  /** Of videos of a resolution, in place of `perSecond`. */
  readonly seconds: NonNullable<PriceSettings['seconds']>;
  /** By service tier: a factor on all of it, or rates in place of it. Those that are not there cost as all. */
  readonly tiers: Readonly<Partial<Record<ServiceTier, number | SteppedRates>>>;
  /** Factors on the prices of tokens, by where the upstream says that it has served. */
  readonly geos: Readonly<Record<string, number>>;
}

type LimitsOfFile = NonNullable<ConfigFile['models'][string]['limits']>;

/** Null where there is no limit. */
export type RateLimits = { readonly [Name in keyof LimitsOfFile]-?: NonNullable<LimitsOfFile[Name]> | null };

/** Calendar periods in UTC; a week begins on Monday. */
export type Budget = Readonly<NonNullable<ConfigFile['models'][string]['budget']>>;

/** What the keys of one group may do. */
export interface Group {
  readonly name: string;
  /** Names of models; `*` for all of them. */
  readonly models: readonly string[];
  readonly limits: RateLimits | null;
  /** What the calls of all of its keys may cost together. */
  readonly budget: Budget | null;
  /** Factor on what its keys' calls are charged; null for none of its own. */
  readonly priceFactor: number | null;
  /** Its keys see each other's video tasks. */
  readonly shareVideos: boolean;
}

/** How targets are chosen, and when the breaker of one opens. */
export type RoutingSettings = Filled<'routing'>;

export interface Key {
  readonly id: string;
  /** SHA-256 of the key, lower-case hex. */
  readonly hash: string;
  readonly groups: readonly string[];
  /** Every model that the key's groups open, by name, sorted by name. */
  readonly models: ReadonlyMap<string, Model>;
  /** Unix milliseconds, or null for never. */
  readonly expiresAt: number | null;
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
  /** Limits that its calls share with those of other keys. */
  readonly groupLimits: readonly { readonly group: string; readonly limits: RateLimits }[];
  /** The same of budgets. */
  readonly groupBudgets: readonly { readonly group: string; readonly budget: Budget }[];
  /** On what its calls are charged: the least of its groups' own factors. */
  readonly priceFactor: number;
  /** Its calls may name the targets that they want, and those that they do not. */
  readonly mayRoute: boolean;
  /**
   * A place where `poolsOfKey` of `limits/pools` remembers the pools of the key's calls. No one else reads it, and its type
   * is not told here: a config knows nothing of limits but their numbers.
   */
  pools?: object | null;
}

export type Timeouts = Filled<'timeouts'>;

/** What holds for WebSockets. */
export type SocketSettings = Filled<'sockets'>;

/** What may be fetched by URL, beside public addresses alone. */
export interface FetchSettings {
  /** First and last port of each range that may be asked. */
  readonly ports: readonly (readonly [number, number])[];
  /** Networks and hosts that are never asked. Hosts as URLs have them; `*.name` for all below a name. */
  readonly denyNetworks: readonly Network[];
  readonly denyHosts: readonly string[];
  /** Through which all is fetched that is not at an upstream's own origin; null for none. */
  readonly proxy: EgressProxy | null;
}

/** In whose headers SDKs read the limits of their key. */
export type RateFamily = 'chat' | 'messages';

/** Real vendor words beside the neutral ones: `{vendorc: ['anthropic'], …}`. */
export type VendorWords = { readonly [Vendor in keyof Filled<'vendors'>]: readonly string[] };

/** Where the records are kept that outlive a process. Plain data; a password in it is never shown. */
export type StoreSettings = EmbeddedStoreSettings | PostgresStoreSettings;

interface EmbeddedStoreSettings {
  readonly kind: 'embedded';
  /** Absolute path of a folder, which is made when it is first needed. */
  readonly path: string;
  /** For how many days tasks are kept. */
  readonly taskDays: number;
}

/** Where a server may be. */
export interface PostgresPlace {
  /** Name or address, or the absolute path of the folder of its socket. */
  readonly host: string;
  readonly port: number;
}

export interface PostgresStoreSettings extends PostgresPlace {
  readonly kind: 'postgres';
  /** Where else it may be: of all places, in their order, the first is used that takes changes. */
  readonly others: readonly PostgresPlace[];
  readonly database: string;
  readonly username: string;
  readonly password: string | null;
  /** `on` does not look at the server's certificate. */
  readonly tls: 'off' | 'on' | 'verified';
  /** In which its tables are; letters, digits and underscores. */
  readonly schema: string;
  /** Longest wait of a call. */
  readonly timeoutMs: number;
  /** For how many days tasks are kept. */
  readonly taskDays: number;
}

/** What is kept of conversations, for upstreams that keep nothing. Bytes are counted as the store counts them. */
export type ConversationSettings = Filled<'conversations'>;

/** How the listener speaks HTTPS. */
export interface ListenTls {
  /** Absolute paths of PEM files. */
  readonly cert: string;
  readonly key: string;
  /** Of what the files hold: their names stay when a certificate is renewed. */
  readonly fingerprint: string;
}

/** What is noted of finished calls in the store. */
export type UsageSettings = Filled<'usage'>;

/** Where the videos of finished tasks are kept, and for how long. The folder is an absolute path. */
export type KeptVideos = Filled<'videos'>;

export type UnpricedRule = NonNullable<ConfigFile['unpriced']>;

/** The running config: frozen, swapped whole on reload, kept by each call from its start to its end. */
export interface Snapshot {
  readonly demo: boolean;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    readonly tls: ListenTls | null;
    /** Where clients reach the gateway, without a trailing slash; null for what their requests say. */
    readonly publicUrl: string | null;
    /** Who is believed about the addresses of clients; null where nobody wants to know them. */
    readonly trustedProxies: readonly Network[] | null;
    /** Pages of which origins may call from a browser, `*` for all; null for none. */
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
  /** Null where no video is kept. */
  readonly videos: KeptVideos | null;
  readonly unpriced: UnpricedRule;
  /** Null where nothing is kept. */
  readonly conversations: ConversationSettings | null;
  /** Clients may carry what was made here: some model's calls are translated, or may be compacted here. */
  readonly translates: boolean;
  /** Headers of clients that some upstream gets, beside those that all get. Lower-case names. */
  readonly passedHeaders: readonly string[];
  /** The same for those of some upstream's answers that clients get. */
  readonly returnedHeaders: readonly string[];
  /** What texts are sealed with that clients carry for the gateway. */
  readonly secret: string;
  /** Models of calls that name none. */
  readonly defaultModels: Readonly<Partial<Record<Protocol, string>>>;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly models: ReadonlyMap<string, Model>;
  readonly groups: readonly Group[];
  /** By SHA-256, lower-case hex. */
  readonly keys: KeysByName;
  readonly keyIds: KeysByName;
}

/** What is needed of a map of all keys, which may be a hundred thousand. */
export interface KeysByName {
  readonly size: number;
  get(name: string): Key | undefined;
  has(name: string): boolean;
  values(): Iterable<Key>;
}
