import {
  addUsage,
  noParts,
  type ServiceTier,
  tierOf,
  type Usage,
  withCharges,
} from '../../../conversation/usage.js';
import { isObject, listOf, parseObject, textOrNull } from '../../../wire/json.js';
import { collectNumbers, numberNames, readNumbers } from '../../../wire/json-numbers.js';
import {
  endOfValue,
  lastMemberObject,
  lastWordOf,
  mostDepth,
  needleOf,
  objectAfterKey,
} from '../../../wire/json-skip.js';

const needle = Buffer.from('"usage"');
const wanted = numberNames([
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'thinking_tokens',
  'web_search_requests',
  'ephemeral_1h_input_tokens',
  'ephemeral_5m_input_tokens',
]);
const found: number[] = [];

/** A usage is the answer's own, or of the message in a stream's first event: the input of a tool stands deeper. */
const levels = 2;

/**
 * Finds the last `usage` in the bytes of an answer or in the end of a stream.
 * @param start what the stream's first event said: it stands for what the object leaves out
 * @returns the tokens, or what was said at the start when it names none
 */
export function lastUsage(bytes: Buffer, start: Usage | null = null): Usage | null {
  const value = lastMemberObject(bytes, needle, levels);
  return value === -1 ? start : (usageAt(bytes, value, start) ?? start);
}

/** Finds the first `usage` object that names tokens: that of `message_start`, in the first bytes of a stream. */
export function firstUsage(bytes: Buffer): Usage | null {
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at)) {
    const value = objectAfterKey(bytes, at, needle.length);
    const usage = value === -1 ? null : usageAt(bytes, value, null);
    if (usage !== null) return usage;
    // One that names none anywhere has none within it that does.
    at = value === -1 ? at + needle.length : endOfValue(bytes, value, mostDepth);
    if (at === -1) return null;
  }
  return null;
}

function usageAt(bytes: Buffer, at: number, start: Usage | null): Usage | null {
  const end = readNumbers(bytes, at, wanted, found);
  if (end === -1) return null;
  const told = bytes.subarray(at, end);
  if (told.includes(iterationsKey)) return decodedAt(told, start);
  const [plain, output] = found;
  // Both are there, if perhaps as no whole numbers, but for the input in a stream's last events.
  if (output === -1 || (plain === -1 && start === null)) return decodedAt(told, start);
  return charged(found, servedIn(told), null, start);
}

function decodedAt(told: Buffer, start: Usage | null): Usage | null {
  return decodeUsage(parseObject(told.toString('utf8')), start);
}

const tierKey = needleOf('"service_tier"');
const speedKey = needleOf('"speed"');
const geoKey = needleOf('"inference_geo"');

/** How and where the vendor says that it has served a call; null for the usual, and where it does not say. */
interface Served {
  readonly tier: ServiceTier | null;
  readonly geo: string | null;
}

function servedIn(bytes: Buffer): Served {
  return servedBy(lastWordOf(bytes, speedKey), lastWordOf(bytes, tierKey), lastWordOf(bytes, geoKey));
}

/** A call at a speed of its own has the price of that, whatever its tier. */
function servedBy(speed: unknown, tier: unknown, geo: unknown): Served {
  return { tier: tierOf(speed) ?? tierOf(tier), geo: anywhere.has(geo) ? null : textOrNull(geo) };
}

/** Words for a place that is none (https://platform.claude.com/docs/en/manage-claude/data-residency). */
const anywhere: ReadonlySet<unknown> = new Set(['', 'global', 'not_available']);

/**
 * Reads a parsed `usage` object.
 * @param start what was said before: the totals of `message_delta` replace those of `message_start`, where it has them
 * @returns the tokens; null, or what was said before, for what is no usage or names no tokens
 */
export function decodeUsage(usage: unknown, start: Usage | null = null): Usage | null {
  if (!isObject(usage)) return start;
  const { iterations } = usage;
  const beside = besideMessage(iterations);
  collectNumbers(iterations === undefined ? usage : { ...usage, iterations: null }, wanted, found);
  if (found[0] === -1 && found[1] === -1) return start;
  return charged(found, servedBy(usage.speed, usage.service_tier, usage.inference_geo), beside, start);
}

/** Where a usage has it, the numbers in it have to be told from its own. */
const iterationsKey = Buffer.from('"iterations"');

const typesBeside: ReadonlySet<unknown> = new Set(['compaction', 'advisor_message']);

/**
 * What the vendor bills beside the tokens of a usage, which are those of the message alone: that the conversation was
 * made shorter, and what another model has advised
 * (https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage).
 */
function besideMessage(iterations: unknown): Usage | null {
  let beside: Usage | null = null;
  for (const iteration of listOf(iterations)) {
    if (!isObject(iteration) || !typesBeside.has(iteration.type)) continue;
    const { iterations: _, ...own } = iteration;
    const more = decodeUsage(own);
    if (more !== null) beside = addUsage(beside, more);
  }
  return beside;
}

/** What usages are the sums of: an event that says one of the two again replaces it, and would else be added to itself. */
const partsOfSums = new WeakMap<Usage, { readonly message: Usage; readonly beside: Usage }>();

function charged(numbers: readonly number[], served: Served, told: Usage | null, start: Usage | null): Usage {
  const before = start === null ? undefined : partsOfSums.get(start);
  const message = sum(numbers, served, before?.message ?? start);
  const beside = told ?? before?.beside ?? null;
  if (beside === null) return message;
  const usage = addUsage(message, beside);
  partsOfSums.set(usage, { message, beside });
  return usage;
}

/**
 * Input that is zero at the end of a stream is input that was left out: it does not shrink.
 * @param numbers by the places of `wanted`, each -1 where it is missing
 */
function sum(numbers: readonly number[], { tier, geo }: Served, start: Usage | null): Usage {
  const { 0: plain = -1, 1: output = -1, 2: read = -1, 3: all = -1, 4: reasoning = -1 } = numbers;
  const { 5: searches = -1, 6: hour = -1, 7: minutes = -1 } = numbers;
  // Where only its parts are told, what was written to the cache is their sum.
  const written = all > 0 ? all : Math.max(0, minutes) + Math.max(0, hour);
  const cached = read > 0 ? read : (start?.cached ?? 0);
  const cacheWritten = written > 0 ? written : (start?.cacheWritten ?? 0);
  const usage = {
    input: (plain > 0 ? plain : plainInput(start)) + cached + cacheWritten,
    output: output >= 0 ? output : (start?.output ?? 0),
    cached,
    cacheWritten,
    reasoning: reasoning > 0 ? reasoning : (start?.reasoning ?? 0),
  };
  const cacheWrittenHour = hour > 0 ? hour : (start?.parts?.cacheWrittenHour ?? 0);
  return withCharges(usage, {
    searches: searches > 0 ? searches : (start?.searches ?? 0),
    parts: cacheWrittenHour > 0 ? { ...noParts, cacheWrittenHour } : null,
    tier: tier ?? start?.tier ?? null,
    geo: geo ?? start?.geo ?? null,
  });
}

/**
 * Writes the JSON text of a `usage` object, which clients need in any case: zeros for what is not known.
 * @param searches that the answer tells of, where the upstream has not counted them
 */
export function encodeUsage(usage: Usage | null, searches = 0): string {
  const { output = 0, cached = 0, cacheWritten = 0, reasoning = 0 } = usage ?? {};
  let text = `{"input_tokens":${plainInput(usage)},"output_tokens":${output}`;
  if (cacheWritten > 0) text += `,"cache_creation_input_tokens":${cacheWritten}`;
  if (cached > 0) text += `,"cache_read_input_tokens":${cached}`;
  if (reasoning > 0) text += `,"output_tokens_details":{"thinking_tokens":${reasoning}}`;
  const searched = usage?.searches ?? searches;
  if (searched === 0) return `${text}}`;
  return `${text},"server_tool_use":{"web_search_requests":${searched},"web_fetch_requests":0}}`;
}

/** The protocol counts input apart from what the cache had a part in. */
function plainInput(usage: Usage | null): number {
  return usage === null ? 0 : Math.max(0, usage.input - usage.cached - usage.cacheWritten);
}
