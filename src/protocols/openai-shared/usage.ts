import {
  noParts,
  type TokenParts,
  tierOf,
  type Usage,
  withCharges,
  withTotal,
} from '../../conversation/usage.js';
import { isObject, type JsonObject, numberOrNull, parseObject } from '../../wire/json.js';
import {
  collectNumbers,
  type NumberNames,
  type NumberScope,
  numberNames,
  readNumbers,
} from '../../wire/json-numbers.js';
import {
  lastMemberObject,
  lastObjectStart,
  lastWordOf,
  lastWordWithin,
  needleOf,
} from '../../wire/json-skip.js';

/*
 * The `usage` objects of OpenAI's protocols: with `prompt_tokens` and `completion_tokens` in the older ones, with
 * `input_tokens` and `output_tokens` in the others, and with details. The details report audio and image tokens, in the
 * spelling of the protocol. In realtime, `cached_tokens_details` reports the same of cached tokens
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/response/done).
 */

interface UsageReader {
  /**
   * Finds the last `usage` object in the bytes of an answer or in the end of a stream. A quoted `"usage"` cannot occur
   * inside a JSON string, which would escape its quotes, so the rest need not be parsed.
   * @returns the tokens, or null if there is no such object or it names none
   */
  lastUsage(bytes: Buffer): Usage | null;
  /**
   * The same for a `usage` inside at most `levels` objects, with the service tier at such a level. An answer that
   * repeats the client's data has it deeper.
   */
  lastUsageWithin(bytes: Buffer, levels: number): Usage | null;
  /**
   * The same for a parsed answer or chunk.
   * @param searches number of searches that its other members show
   */
  usageOf(answer: JsonObject, searches?: number): Usage | null;
}

/** A protocol's names of the input and output tokens. */
type TokenNames = readonly [input: string, output: string];

const olderNames: TokenNames = ['prompt_tokens', 'completion_tokens'];

/** The names in all protocols except the older ones. */
export const tokenNames: TokenNames = ['input_tokens', 'output_tokens'];

/** Kind of the output tokens if an upstream does not distinguish them. */
type OutputKind = 'text' | 'audio' | 'image';

const inputDetails = [
  'prompt_tokens_details',
  'input_tokens_details',
  'input_token_details',
  'prompt_token_details',
];
const outputDetails = ['completion_tokens_details', 'output_tokens_details', 'output_token_details'];
const cachedObjects = ['cached_tokens_details'];
const kinds = ['audio_tokens', 'image_tokens', 'video_tokens'];
const scopes: readonly NumberScope[] = [
  { objects: inputDetails, names: kinds },
  { objects: outputDetails, names: kinds },
  { objects: cachedObjects, names: kinds },
];
/** Perplexity counts its queries, xAI the sources that it bills, and others the search requests, like messages. */
const searchNames = ['web_search_requests', 'num_search_queries', 'num_sources_used'];
/** xAI's searches of the web and of X, which cost the same (https://docs.x.ai/developers/pricing). */
const toolSearchNames = ['web_search_calls', 'x_search_calls'];

/** Makes a reader of the usage of answers that have output. */
export function createUsageReader(
  names: TokenNames = olderNames,
  outputKind: OutputKind = 'text',
): UsageReader {
  const plain = [
    ...names,
    'cached_tokens',
    'reasoning_tokens',
    'cache_write_tokens',
    'total_tokens',
    ...otherCachedNames,
    otherWrittenName,
    heardName,
    ...searchNames,
    ...toolSearchNames,
    ...longWrittenNames,
    citationsName,
  ];
  return readerOf(numberNames(plain, scopes), (numbers, searches) =>
    usageOfNumbers(numbers, outputKind, searches),
  );
}

/** Names of cached tokens at other servers: DeepSeek, gateways that take them from messages, and Mistral. */
const otherCachedNames = ['prompt_cache_hit_tokens', 'cache_read_input_tokens', 'num_cached_tokens'];
const otherWrittenName = 'cache_creation_input_tokens';
/** Mistral's seconds of sound in the input, whose tokens only the total has. */
const heardName = 'prompt_audio_seconds';

/** Returns the seconds of audio in a usage; 0 if it names none. Larger numbers than whole ones cannot be a length. */
export function secondsOfUsage(usage: unknown): number {
  if (!isObject(usage)) return 0;
  const seconds = numberOrNull(usage.seconds) ?? numberOrNull(usage[heardName]) ?? 0;
  return seconds >= 0 && seconds <= Number.MAX_SAFE_INTEGER ? seconds : 0;
}

/** Cache writes that are kept for long: those of responses, and those of messages at gateways that translate them. */
const longWrittenNames = ['ttl_12h_tokens', 'ephemeral_1h_input_tokens'];
/**
 * What Perplexity's research has read of its sources. They cost as much as its input, and are in no other number
 * (https://docs.perplexity.ai/getting-started/pricing).
 */
const citationsName = 'citation_tokens';

/**
 * @param numbers in the order of `createUsageReader`, each -1 if missing; the total replaces what only the total shows
 * @returns null if they include neither input nor output, nor the total of a recording
 */
function usageOfNumbers(numbers: readonly number[], outputKind: OutputKind, searches: number): Usage | null {
  // By index: an iterator costs a few percent of the whole function.
  const { 0: input = -1, 1: output = -1, 2: cached = -1, 3: reasoning = -1, 4: written = -1 } = numbers;
  const {
    5: total = -1,
    6: hit = -1,
    7: read = -1,
    8: count = -1,
    9: created = -1,
    [ofHeard]: heard = -1,
  } = numbers;
  const isInTotal = input === -1 && output === -1;
  // What is said of a recording may be its seconds and the total alone.
  if (isInTotal && (heard <= 0 || total <= 0)) return null;
  const parts: Usage = {
    input: input === -1 ? Math.max(0, total - Math.max(0, output)) : input,
    output: output === -1 ? (isInTotal ? 0 : Math.max(0, total - input)) : output,
    cached: Math.max(0, cached, hit, read, count),
    cacheWritten: Math.max(0, written, created),
    reasoning: Math.max(0, reasoning),
  };
  const { [ofCitations]: citations = -1 } = numbers;
  // Added below, also if the total has them.
  const beside = total - parts.input - parts.output - citations;
  const isCited = citations > 0 && (beside === 0 || beside === parts.reasoning);
  const usage = withTotal(parts, isCited ? total - citations : total, heard > 0);
  // Most answers are texts without further details.
  return outputKind === 'text' && searches === 0 && heard <= 0 && !hasCharges(numbers)
    ? usage
    : withNumbers(usage, numbers, outputKind, searches);
}

/** Index of the seconds of sound, and that of the first number with a price of its own. */
const ofHeard = 10;
const firstCharge = 11;
/** Index of the citations. */
const ofCitations = firstCharge + searchNames.length + toolSearchNames.length + longWrittenNames.length;

function hasCharges(numbers: readonly number[]): boolean {
  for (let index = firstCharge; index < numbers.length; index++)
    if ((numbers[index] as number) > 0) return true;
  return false;
}

function withNumbers(
  usage: Usage,
  numbers: readonly number[],
  outputKind: OutputKind,
  searches: number,
): Usage {
  const ofSearches = numbers.slice(firstCharge, firstCharge + searchNames.length);
  const charged = numbers.slice(firstCharge + searchNames.length);
  const [ofWeb = -1, ofX = -1, longWritten = -1, hourWritten = -1, citations = -1, ...ofKinds] = charged;
  const counted = Math.max(searches, ...ofSearches, Math.max(0, ofWeb) + Math.max(0, ofX));
  const [audioOut = -1, imageOut = -1] = ofKinds.slice(kinds.length);
  const isTold = audioOut !== -1 || imageOut !== -1;
  const parts = inputParts(ofKinds, ofKinds.slice(2 * kinds.length));
  const { 0: input = -1, [ofHeard]: heard = -1 } = numbers;
  // The input that the total alone shows.
  const sound = heard > 0 ? usage.input - Math.max(0, input) : 0;
  const cited = citations > 0 ? { ...usage, input: usage.input + citations } : usage;
  return withCharges(cited, {
    searches: counted,
    parts: {
      ...parts,
      audioInput: Math.max(parts.audioInput, sound),
      cacheWrittenHour: Math.max(0, longWritten, hourWritten),
      audioOutput: outputKind === 'audio' && !isTold ? usage.output : Math.max(0, audioOut),
      imageOutput: outputKind === 'image' && !isTold ? usage.output : Math.max(0, imageOut),
    },
  });
}

/**
 * Returns the kinds of the input tokens.
 * @param ofInput numbers in the order of `kinds`, each -1 if missing
 * @param ofCached the same for the cached ones among them
 */
function inputParts(ofInput: readonly number[], ofCached: readonly number[]): TokenParts {
  const { 0: audio = -1, 1: image = -1, 2: video = -1 } = ofInput;
  const { 0: cachedAudio = -1, 1: cachedImage = -1, 2: cachedVideo = -1 } = ofCached;
  return {
    ...noParts,
    audioInput: Math.max(0, audio),
    imageInput: Math.max(0, image),
    // Cached tokens have the price of the cache.
    videoInput: Math.max(0, video - Math.max(0, cachedVideo)),
    cachedAudio: Math.max(0, cachedAudio),
    cachedImage: Math.max(0, cachedImage),
  };
}

const inputNames = ['prompt_tokens', 'total_tokens', 'cached_tokens'];
const inputScopes: readonly NumberScope[] = [
  { objects: inputDetails, names: kinds },
  { objects: cachedObjects, names: kinds },
];

/** Makes a reader for answers whose tokens are all input: some servers report only the total. */
export function createInputUsageReader(): UsageReader {
  return readerOf(numberNames(inputNames, inputScopes), (numbers) => {
    const { 0: prompt = -1, 1: total = -1, 2: cached = -1 } = numbers;
    const input = prompt > 0 ? prompt : Math.max(prompt, total);
    if (input === -1) return null;
    const usage = { input, output: 0, cached: Math.max(0, cached), cacheWritten: 0, reasoning: 0 };
    const ofKinds = numbers.slice(inputNames.length);
    return withCharges(usage, { parts: inputParts(ofKinds, ofKinds.slice(kinds.length)) });
  });
}

/** @param usageOfFound reads the wanted numbers, each -1 if missing */
function readerOf(
  wanted: NumberNames,
  usageOfFound: (numbers: readonly number[], searches: number) => Usage | null,
): UsageReader {
  const found: number[] = [];
  function usageAt(bytes: Buffer, start: number): Usage | null {
    const end = readNumbers(bytes, start, wanted, found);
    if (end === -1) return null;
    // One of the first two is missing, or is written as `1e3`.
    if (found[0] === -1 || found[1] === -1)
      collectNumbers(parseObject(bytes.toString('utf8', start, end)) ?? {}, wanted, found);
    return usageOfFound(found, 0);
  }
  return {
    lastUsage: (bytes) => {
      const start = lastObjectStart(bytes, usageKey);
      const usage = start === -1 ? null : usageAt(bytes, start);
      return usage === null ? null : withTier(usage, lastWordOf(bytes, tierKey));
    },
    lastUsageWithin: (bytes, levels) => {
      const start = lastMemberObject(bytes, usageKey, levels);
      const usage = start === -1 ? null : usageAt(bytes, start);
      return usage === null ? null : withTier(usage, lastWordWithin(bytes, tierKey, levels));
    },
    usageOf: (answer, searches = 0) => {
      const told = answer.usage;
      if (!isObject(told)) return null;
      collectNumbers(told, wanted, found);
      const usage = usageOfFound(found, searches);
      // Mistral reports the tier in its usage.
      return usage === null ? null : withTier(usage, answer.service_tier ?? told.service_tier);
    },
  };
}

const usageKey = Buffer.from('"usage"');
const tierKey = needleOf('"service_tier"');

function withTier(usage: Usage, word: unknown): Usage {
  const tier = tierOf(word);
  return tier === null ? usage : withCharges(usage, { tier });
}
