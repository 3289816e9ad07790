import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { textProtocols } from '../conversation/request.js';
import { isLoopback } from './demo.js';
import type { ResolvedConfig, ResolvedModel, ResolvedUpstream } from './resolve.js';
import type { ImagePrice } from './types.js';
import { kindTraits, nativeProtocols } from './upstream-kinds.js';

/** Hosts whose upstreams can search the web in their own protocol. */
const searchingHosts = ['anthropic.com', 'openai.com'];

/**
 * Finds settings that are valid but probably mistakes.
 * @returns a sentence for each, without a full stop
 */
export function notesOf(config: ResolvedConfig): readonly string[] {
  const notes = config.models.flatMap((model) => searchNotes(model, config.upstreams));
  notes.push(...idleNotes(config), ...priceNotes(config));
  notes.push(...config.models.flatMap(sizeNotes), ...config.models.flatMap(soundNotes));
  notes.push(...config.models.flatMap(characterNotes));
  notes.push(...config.models.flatMap(unitNotes), ...config.upstreams.flatMap(versionNotes));
  notes.push(...warningsOf(config), ...expiryNotes(config));
  return notes;
}

/**
 * Finds the notes that are also logged when a gateway starts or reloads its config.
 * @throws Error when the certificate cannot be read
 */
export function warningsOf(config: ResolvedConfig): readonly string[] {
  const { upstreams } = config;
  const loops = upstreams.flatMap((each) => loopNotes(config, each));
  return [...certificateNotes(config), ...loops, ...upstreams.flatMap(variableNotes), ...presetNotes(config)];
}

/** A preset of older models. */
interface OlderPreset {
  /** What it does to calls of newer models. */
  readonly effect: string;
  /** Returns the preset for a model, by its name, if that is a newer one. */
  newer(model: string, baseUrl: string | null): string | null;
}

const olderPresets: ReadonlyMap<string, OlderPreset> = new Map([
  // A model thinks, and is paid for that, though its clients want no reasoning.
  ['openai-reasoning', { effect: 'which turns the effort none into low', newer: newerOpenai }],
  ['claude-4.8', { effect: 'with which calls that clients force are refused', newer: newerClaude }],
]);
/** The version in the name of a model of OpenAI. */
const version = /(?:^|[^a-z])gpt-(\d)(?:\.(\d{1,2}))?(?![\d.])/i;
/** The version in the name of a model of Anthropic, which a date may follow. */
const claudeVersion =
  /(?:^|[^a-z])claude-(opus|sonnet|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/i;
/** Most targets that are named, in one note each. */
const mostOlder = 10;

/** Notes targets whose preset is that of older models, by the name of their model. */
function presetNotes({ models, upstreams }: ResolvedConfig): readonly string[] {
  const byName = new Map(upstreams.map((upstream) => [upstream.name, upstream]));
  const notes: string[] = [];
  let more = 0;
  for (const { name, targets } of models)
    for (const [index, target] of targets.entries()) {
      const upstream = byName.get(target.upstream);
      const own = target.preset ?? upstream?.preset ?? '';
      const older = olderPresets.get(own);
      const preset = older?.newer(target.model, upstream?.baseUrl ?? null) ?? null;
      if (older === undefined || preset === null) continue;
      if (notes.length === mostOlder) more++;
      else
        notes.push(
          `models.${name}.targets[${index}] has the preset ${own}, ${older.effect}: ${target.model} has the preset ${preset}`,
        );
    }
  return more === 0 ? notes : [...notes, `${more} more targets have a preset of older models`];
}

/** Returns the preset for a model of OpenAI that knows the effort `none`. */
function newerOpenai(model: string, baseUrl: string | null): string | null {
  const [, major, minor = '0'] = version.exec(model) ?? [];
  const number = 100 * Number(major) + Number(minor);
  // Models for Codex do not know it.
  if (major === undefined || number < 501 || /codex/i.test(model)) return null;
  const isOwn = baseUrl !== null && isOfHost(baseUrl, 'openai.com');
  return number >= 506 && isOwn ? 'openai-5.6' : 'openai-5.1';
}

/** Returns the preset for a model of Anthropic that refuses a choice that forces a call. Its beta is of Anthropic's own API. */
function newerClaude(model: string, baseUrl: string | null): string | null {
  const [, family = '', major, minor = '0'] = claudeVersion.exec(model) ?? [];
  if (major === undefined || baseUrl === null || !isOfHost(baseUrl, 'anthropic.com')) return null;
  const first = /opus|sonnet/i.test(family) ? 505 : 501;
  return 100 * Number(major) + Number(minor) >= first ? 'claude-5.5' : null;
}

/** Variable names in the syntax of a shell or of another gateway. They are sent to the upstream unchanged. */
const variable = /^(?:\$[A-Z_][A-Z0-9_]*|os\.environ\/\w+|env[.:]\w+)$/;

function variableNotes({ name, apiKeys }: ResolvedUpstream): string[] {
  return apiKeys.flatMap((apiKey, index) =>
    variable.test(apiKey)
      ? [`upstreams.${name}.apiKeys[${index}] is the name of a variable: what it holds is written \${NAME}`]
      : [],
  );
}

/**
 * Notes an upstream that is the gateway's own listener. A call of a model that leads back to itself would loop without
 * end.
 */
function loopNotes({ listen }: ResolvedConfig, { name, baseUrl, proxy }: ResolvedUpstream): string[] {
  if (baseUrl === null || proxy !== null || !isOwnAddress(listen, new URL(baseUrl))) return [];
  return [
    `upstreams.${name} is this gateway itself: a call of a model whose target leads back to that model goes round until it is refused with 508`,
  ];
}

function isOwnAddress(listen: ResolvedConfig['listen'], url: URL): boolean {
  if (listen.publicUrl !== null && new URL(listen.publicUrl).origin === url.origin) return true;
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (port !== listen.port) return false;
  const isEverywhere = listen.host === '0.0.0.0' || listen.host === '::';
  return host === listen.host || (isLoopback(host) && (isEverywhere || isLoopback(listen.host)));
}

/** No vendor is this cheap. Price lists for programs state the price of one token, or of one character. */
const leastPerMillion = { tokens: 0.0001, characters: 0.01 } as const;

/** Notes a model whose tokens, or characters, all cost next to nothing. */
function unitNotes({ name, price }: ResolvedModel): string[] {
  if (price === null) return [];
  const { input, output, characters } = price.rates;
  const noteOf = (unit: keyof typeof leastPerMillion, highest: number): string[] => {
    const least = leastPerMillion[unit];
    if (highest === 0 || highest >= least) return [];
    return [
      `models.${name}.price has less than ${least} USD for a million ${unit}: prices are for a million, not for one`,
    ];
  };
  return [...noteOf('tokens', Math.max(input, output)), ...noteOf('characters', characters)];
}

/** Notes an upstream whose version path may be missing. */
function versionNotes({ name, kind, baseUrl }: ResolvedUpstream): string[] {
  if (kindTraits[kind].versionPath !== null || baseUrl === null) return [];
  if (new URL(baseUrl).pathname !== '/') return [];
  const at = new URL('chat/completions', baseUrl);
  return [`upstreams.${name} is asked at ${at}: if it wants a version, write it into baseUrl`];
}

/** Most expired keys that are named, in one note each. */
const mostExpired = 10;

function expiryNotes({ keys }: ResolvedConfig): readonly string[] {
  const now = Date.now();
  const expired = keys.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now);
  const notes = expired.slice(0, mostExpired).map(({ id, expiresAt }) => {
    const since = new Date(expiresAt ?? 0).toISOString();
    return `the key ${id} has expired: its calls are refused since ${since}`;
  });
  if (expired.length > mostExpired) notes.push(`${expired.length - mostExpired} more keys have expired`);
  return notes;
}

/** Notes a certificate that clients refuse now. */
function certificateNotes({ listen: { tls } }: ResolvedConfig): readonly string[] {
  if (tls === null) return [];
  const { validFrom, validTo } = new X509Certificate(readFileSync(tls.cert));
  const now = Date.now();
  if (now > Date.parse(validTo)) return [`listen.tls.cert has expired: it was valid until ${validTo}`];
  return now < Date.parse(validFrom) ? [`listen.tls.cert is not valid yet: it is from ${validFrom} on`] : [];
}

/** Notes settings of other upstreams that have an effect only on those of kind chat. Their author expects an effect. */
function idleNotes({ upstreams, models }: ResolvedConfig): readonly string[] {
  const others = new Map(upstreams.filter(isOfOtherVendor).map(({ name, kind }) => [name, kind]));
  const note = (setting: string, kind: string | undefined): string =>
    `${setting} changes nothing: it is for upstreams of kind chat, and this one's is ${kind}`;
  const ofUpstreams = upstreams.flatMap(({ name, responsesSocket }) =>
    responsesSocket && others.has(name) ? [note(`upstreams.${name}.responsesSocket`, others.get(name))] : [],
  );
  const ofTargets = models.flatMap((model) =>
    model.targets.flatMap(({ upstream, images }, index) =>
      images !== null && others.has(upstream)
        ? [note(`models.${model.name}.targets[${index}].images`, others.get(upstream))]
        : [],
    ),
  );
  return [...ofUpstreams, ...ofTargets];
}

function isOfOtherVendor({ kind }: ResolvedUpstream): boolean {
  return !kindTraits[kind].isOpenaiCompatible;
}

/** Most models that are named in one note. */
const mostNamed = 50;

/**
 * Notes models without a price. Their calls cost nothing, and are refused if they have a budget and `unpriced` is
 * `refuse`.
 */
function priceNotes({ models, groups, keys, unpriced }: ResolvedConfig): readonly string[] {
  const names = models.flatMap(({ name, price }) => (price === null ? [name] : []));
  if (names.length === 0) return [];
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  const hasBudgets = [...models, ...groups, ...keys].some(({ budget }) => budget !== null);
  const meaning =
    hasBudgets && unpriced === 'refuse'
      ? 'calls that have a budget are refused'
      : 'their calls are charged nothing';
  return [`no price is set for ${names.slice(0, mostNamed).join(', ')}${more}: ${meaning}`];
}

/** Notes a model with prices for certain images or videos only. All others cost nothing. */
function sizeNotes({ name, price }: ResolvedModel): string[] {
  if (price === null) return [];
  const { rates, images, seconds } = price;
  const notes: string[] = [];
  if (rates.perCall === 0 && images.length > 0 && images.every(isOfSome))
    notes.push(
      `models.${name} has prices of images and no perCall: those of another size or quality, or that name none, cost nothing`,
    );
  if (rates.perSecond === 0 && seconds.length > 0)
    notes.push(
      `models.${name} has prices of seconds and no perSecond: videos of another resolution, or that name none, cost nothing`,
    );
  return notes;
}

/** Notes an audio model with prices for tokens only. No upstream is obliged to count those. */
function soundNotes({ name, protocols, price }: ResolvedModel): string[] {
  if (price === null || !protocols.includes('audio')) return [];
  const { input, output, audioInput, audioOutput, characters, perCall, perSecond } = price.rates;
  if (characters + perCall + perSecond > 0 || input + output + audioInput + audioOutput === 0) return [];
  return [
    `models.${name} has prices of tokens and neither perSecond nor perCall: sounds and transcripts whose tokens their upstream does not count are charged by an estimate`,
  ];
}

/** Notes a model that is priced by the characters of speech alone, and has other calls. */
function characterNotes({ name, protocols, price }: ResolvedModel): string[] {
  if (price === null || price.rates.characters === 0 || protocols.every((each) => each === 'audio'))
    return [];
  const { characters: _, ...others } = price.rates;
  const hasOthers = Object.values(others).some((rate) => rate > 0);
  if (hasOthers || price.images.length + price.seconds.length > 0) return [];
  return [`models.${name}.price has characters alone: only speech has any, and its other calls cost nothing`];
}

function isOfSome({ size, quality }: ImagePrice): boolean {
  return size !== null || quality !== null;
}

/** Notes targets to which translated calls may send a web search, although their hosts are not known to support it. */
function searchNotes(
  { name, protocols, targets }: ResolvedModel,
  upstreams: readonly ResolvedUpstream[],
): string[] {
  return targets.flatMap(({ upstream: named, responses, translation }, index) => {
    const upstream = upstreams.find((each) => each.name === named);
    const baseUrl = upstream?.baseUrl ?? null;
    if (upstream === undefined || baseUrl === null || translation.search !== null) return [];
    if (upstream.kind !== 'messages' && responses !== 'only') return [];
    const own = nativeProtocols(upstream.kind, responses);
    const isTranslated = textProtocols.some((each) => protocols.includes(each) && !own.has(each));
    if (!isTranslated || isOfSearchingHost(baseUrl)) return [];
    return [
      `models.${name}.targets[${index}] is asked to search the web where a client wants that: if it has no search, set its translation.search to false`,
    ];
  });
}

function isOfSearchingHost(baseUrl: string): boolean {
  return searchingHosts.some((host) => isOfHost(baseUrl, host));
}

function isOfHost(baseUrl: string, host: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === host || hostname.endsWith(`.${host}`);
}
