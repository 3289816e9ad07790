import { noParts, type TokenParts, tierOf, type Usage, withCharges } from '../../conversation/usage.js';
import { countOf, countOrNone, isObject, type JsonObject, parseObject } from '../../wire/json.js';
import { type NumberNames, type NumberScope, numberNames, readNumbers } from '../../wire/json-numbers.js';
import {
  lastMemberAt,
  lastObjectStart,
  lastWordOf,
  lastWordWithin,
  needleOf,
  objectAfterKey,
} from '../../wire/json-skip.js';

/*
 * The `usage` objects of OpenAI's protocols: `prompt_tokens` and `completion_tokens` in the older ones, `input_tokens`
 * and `output_tokens` in the others, with details. Which tokens are audio or images is told in them, in the spelling of the
 * protocol; in `cached_tokens_details` realtime has the same of what was cached
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/response/done).
 */

interface UsageReader {
  /**
   * Finds the last `usage` object in the bytes of an answer or in the end of a stream. A quoted `"usage"` cannot occur
   * inside a JSON string, where its quotes would be escaped, so no parse of the rest is needed.
   * @returns the tokens that it names, or null when there is none or it names none
   */
  lastUsage(bytes: Buffer): Usage | null;
  /**
   * The same of a `usage` that stands in at most `levels` objects, with the service tier that stands so: an answer that
   * repeats what its client has sent has that deeper.
   */
  lastUsageWithin(bytes: Buffer, levels: number): Usage | null;
}

const usageMember = '"usage"';

/** What a protocol calls the tokens of the input and of the output. */
type TokenNames = readonly [input: string, output: string];

const olderNames: TokenNames = ['prompt_tokens', 'completion_tokens'];

/** What all protocols but the older ones call them. */
export const tokenNames: TokenNames = ['input_tokens', 'output_tokens'];

/** What the tokens of the output are, where an upstream does not tell them apart. */
type OutputKind = 'text' | 'audio' | 'image';

const inputDetails = ['prompt_tokens_details', 'input_tokens_details', 'input_token_details'];
const outputDetails = ['completion_tokens_details', 'output_tokens_details', 'output_token_details'];
const cachedObjects = ['cached_tokens_details'];
const searchObjects = ['server_tool_use'];
const kinds = ['audio_tokens', 'image_tokens'];
const scopes: readonly NumberScope[] = [
  { objects: inputDetails, names: kinds },
  { objects: outputDetails, names: kinds },
  { objects: cachedObjects, names: kinds },
];
/** Perplexity counts its queries, xAI the sources that it bills, and others their requests as messages do. */
const searchNames = ['web_search_requests', 'num_search_queries', 'num_sources_used'];

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
    ...searchNames,
  ];
  return readerOf(usageMember, numberNames(plain, scopes), (numbers, told) => {
    const { 0: input = -1, 1: output = -1 } = numbers;
    // One of the two is missing, or is written as `1e3`.
    const counts =
      input === -1 || output === -1
        ? countsIn(parseObject(told.toString('utf8')) ?? {}, names)
        : { input, output };
    return counts === null ? null : usageOfNumbers(counts, numbers, outputKind);
  });
}

/** What other servers call the tokens of the cache: DeepSeek, and gateways that have them from messages. */
const otherCachedNames = ['prompt_cache_hit_tokens', 'cache_read_input_tokens'];
const otherWrittenName = 'cache_creation_input_tokens';

/**
 * Reads the `usage` of a parsed answer or chunk; null when it is none or names no tokens.
 * @param searches of which its other members tell
 */
export function decodeUsage(
  { usage, service_tier }: JsonObject,
  names: TokenNames = olderNames,
  searches = 0,
): Usage | null {
  if (!isObject(usage)) return null;
  const counts = countsIn(usage, names);
  if (counts === null) return null;
  const { cached_tokens, cache_write_tokens } = firstObject(usage, inputDetails) ?? usage;
  const { reasoning_tokens } = firstObject(usage, outputDetails) ?? usage;
  const { prompt_cache_hit_tokens, cache_read_input_tokens, cache_creation_input_tokens } = usage;
  const hit = Math.max(countOf(prompt_cache_hit_tokens), countOf(cache_read_input_tokens));
  const counted = withReasoning(countOf(usage.total_tokens), {
    input: counts.input,
    output: counts.output,
    cached: Math.max(countOf(cached_tokens), hit),
    cacheWritten: Math.max(countOf(cache_write_tokens), countOf(cache_creation_input_tokens)),
    reasoning: countOf(reasoning_tokens),
  });
  return withCharges(counted, {
    searches: Math.max(searches, searchesIn(usage)),
    parts: partsOf(usage),
    tier: tierOf(service_tier),
  });
}

/** All tokens of the input and of the output. */
interface TokenCounts {
  readonly input: number;
  readonly output: number;
}

/** The tokens of a parsed `usage`; what only its total tells of is told by that. @returns null where it names neither */
function countsIn(usage: JsonObject, [inputName, outputName]: TokenNames): TokenCounts | null {
  const input = countOrNone(usage[inputName]);
  const output = countOrNone(usage[outputName]);
  if (input === -1 && output === -1) return null;
  const total = countOrNone(usage.total_tokens);
  return {
    input: input === -1 ? Math.max(0, total - output) : input,
    output: output === -1 ? Math.max(0, total - input) : output,
  };
}

/** @param numbers in the order in which `createUsageReader` names them, each -1 where it is missing */
function usageOfNumbers(
  { input, output }: TokenCounts,
  numbers: readonly number[],
  outputKind: OutputKind,
): Usage {
  // By their places: an iterator over them takes a few percent more of the whole.
  const { 2: cached = -1, 3: reasoning = -1, 4: written = -1, 5: total = -1 } = numbers;
  const { 6: hit = -1, 7: read = -1, 8: created = -1 } = numbers;
  const usage = withReasoning(total, {
    input,
    output,
    cached: Math.max(0, cached, hit, read),
    cacheWritten: Math.max(0, written, created),
    reasoning: Math.max(0, reasoning),
  });
  // Most answers are texts, and nothing else is told of them.
  return outputKind === 'text' && !hasCharges(numbers) ? usage : withNumbers(usage, numbers, outputKind);
}

/** Where the numbers begin that have prices of their own. */
const firstCharge = 9;

/**
 * Usage whose output has its reasoning in it. xAI counts that beside the output, of which its total alone tells
 * (https://docs.x.ai/docs/key-information/consumption-and-rate-limits); OpenAI's total is input and output.
 * @param total as the upstream has counted it; not above zero where it has not
 */
function withReasoning(total: number, usage: Usage): Usage {
  const { input, output, reasoning } = usage;
  if (reasoning === 0 || total !== input + output + reasoning) return usage;
  return { ...usage, output: output + reasoning };
}

function hasCharges(numbers: readonly number[]): boolean {
  for (let index = firstCharge; index < numbers.length; index++)
    if ((numbers[index] as number) > 0) return true;
  return false;
}

function withNumbers(usage: Usage, numbers: readonly number[], outputKind: OutputKind): Usage {
  const searches = Math.max(0, ...numbers.slice(firstCharge, firstCharge + searchNames.length));
  const ofKinds = numbers.slice(firstCharge + searchNames.length);
  const [audioIn = -1, imageIn = -1, audioOut = -1, imageOut = -1, cachedAudio = -1, cachedImage = -1] =
    ofKinds;
  const isTold = audioOut !== -1 || imageOut !== -1;
  return withCharges(usage, {
    searches,
    parts: {
      ...noParts,
      audioInput: Math.max(0, audioIn),
      imageInput: Math.max(0, imageIn),
      cachedAudio: Math.max(0, cachedAudio),
      cachedImage: Math.max(0, cachedImage),
      audioOutput: outputKind === 'audio' && !isTold ? usage.output : Math.max(0, audioOut),
      imageOutput: outputKind === 'image' && !isTold ? usage.output : Math.max(0, imageOut),
    },
  });
}

/** The tokens of a parsed `usage` that are of other kinds; null where it has no details. */
function partsOf(usage: JsonObject): TokenParts | null {
  const input = firstObject(usage, inputDetails);
  const output = firstObject(usage, outputDetails);
  if (input === null && output === null) return null;
  const cached = input === null ? null : firstObject(input, cachedObjects);
  return {
    ...noParts,
    audioInput: countOf(input?.audio_tokens),
    imageInput: countOf(input?.image_tokens),
    cachedAudio: countOf(cached?.audio_tokens),
    cachedImage: countOf(cached?.image_tokens),
    audioOutput: countOf(output?.audio_tokens),
    imageOutput: countOf(output?.image_tokens),
  };
}

/** The searches that a parsed `usage` counts. */
function searchesIn(usage: JsonObject): number {
  const { num_search_queries, num_sources_used } = usage;
  const requests = firstObject(usage, searchObjects)?.web_search_requests;
  // One by one: a list of them takes a third of the whole.
  return Math.max(countOf(num_search_queries), countOf(num_sources_used), countOf(requests));
}

function firstObject(holder: JsonObject, names: readonly string[]): JsonObject | null {
  for (const name of names) {
    const value = holder[name];
    if (isObject(value)) return value;
  }
  return null;
}

/**
 * Makes a reader of the usage of answers whose tokens are all input: some servers name the total alone.
 * @param member that holds the numbers, with its quotes
 * @param names of the tokens of the prompt and of the total
 */
export function createInputUsageReader(
  member = usageMember,
  names: readonly [prompt: string, total: string] = ['prompt_tokens', 'total_tokens'],
): UsageReader {
  const wanted = numberNames(names);
  return readerOf(member, wanted, ({ 0: prompt = -1, 1: total = -1 }) => {
    const input = prompt === -1 ? total : prompt;
    return input === -1 ? null : { input, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  });
}

/** @param usageOf reads the wanted numbers, each -1 where it is missing, and if need be the bytes that they are from */
function readerOf(
  member: string,
  wanted: NumberNames,
  usageOf: (numbers: readonly number[], told: Buffer) => Usage | null,
): UsageReader {
  const key = Buffer.from(member);
  const found: number[] = [];
  function usageAt(bytes: Buffer, start: number): Usage | null {
    const end = readNumbers(bytes, start, wanted, found);
    return end === -1 ? null : usageOf(found, bytes.subarray(start, end));
  }
  function lastUsage(bytes: Buffer): Usage | null {
    const start = lastObjectStart(bytes, key);
    const usage = start === -1 ? null : usageAt(bytes, start);
    return usage === null ? null : withTier(usage, lastWordOf(bytes, tierKey));
  }
  function lastUsageWithin(bytes: Buffer, levels: number): Usage | null {
    const at = lastMemberAt(bytes, key, levels);
    const start = at === -1 ? -1 : objectAfterKey(bytes, at, key.length);
    const usage = start === -1 ? null : usageAt(bytes, start);
    return usage === null ? null : withTier(usage, lastWordWithin(bytes, tierKey, levels));
  }
  return { lastUsage, lastUsageWithin };
}

const tierKey = needleOf('"service_tier"');

function withTier(usage: Usage, word: string | null): Usage {
  const tier = tierOf(word);
  return tier === null ? usage : withCharges(usage, { tier });
}
