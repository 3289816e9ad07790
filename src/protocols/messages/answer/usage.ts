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

/** In an answer, or an event of its stream. */
export const usageKey = Buffer.from('"usage"');
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

/**
 * A usage is a member of the answer, or of the message in a stream's first event. The input of a tool stands deeper.
 */
const levels = 2;

/**
 * Finds the last `usage` in the bytes of an answer or in the end of a stream.
 * @param start the usage in the stream's first event, which replaces what the object omits
 * @returns the tokens, or `start` if the object names none
 */
export function lastUsage(bytes: Buffer, start: Usage | null = null): Usage | null {
  const value = lastMemberObject(bytes, usageKey, levels);
  return value === -1 ? start : (usageAt(bytes, value, start) ?? start);
}

/** Finds the first `usage` object that names tokens: that of `message_start`, in the first bytes of a stream. */
export function firstUsage(bytes: Buffer): Usage | null {
  for (let at = bytes.indexOf(usageKey); at !== -1; at = bytes.indexOf(usageKey, at)) {
    const value = objectAfterKey(bytes, at, usageKey.length);
    const usage = value === -1 ? null : usageAt(bytes, value, null);
    if (usage !== null) return usage;
    // If an object names no tokens at all, no object within it does.
    at = value === -1 ? at + usageKey.length : endOfValue(bytes, value, mostDepth);
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
  // Both numbers are present, even if not as integers. Only the last events of a stream may lack the input.
  if (output === -1 || (plain === -1 && start === null)) return decodedAt(told, start);
  return charged(found, servedIn(told), null, start);
}

function decodedAt(told: Buffer, start: Usage | null): Usage | null {
  return decodeUsage(parseObject(told.toString('utf8')), start);
}

const tierKey = needleOf('"service_tier"');
const speedKey = needleOf('"speed"');
const geoKey = needleOf('"inference_geo"');

/** The service tier and the place that the vendor reports; null for the default, and if it is not reported. */
interface Served {
  readonly tier: ServiceTier | null;
  readonly geo: string | null;
}

function servedIn(bytes: Buffer): Served {
  return servedBy(lastWordOf(bytes, speedKey), lastWordOf(bytes, tierKey), lastWordOf(bytes, geoKey));
}

/**
 * Reads the service tier and the place. A call with a speed of its own has the price of that speed, whatever its tier.
 */
function servedBy(speed: unknown, tier: unknown, geo: unknown): Served {
  const place = anywhere.has(geo) ? null : textOrNull(geo);
  return {
    tier: tierOf(speed) ?? tierOf(tier),
    geo: place !== null && place.length > longestGeo ? null : place,
  };
}

/** The ledger stores the name of a place; a longer text is none. */
const longestGeo = 64;
/** Values that name no particular place (https://platform.claude.com/docs/en/manage-claude/data-residency). */
const anywhere: ReadonlySet<unknown> = new Set(['', 'global', 'not_available']);

/**
 * Reads a parsed `usage` object.
 * @param start the earlier usage: the totals of `message_delta` replace those of `message_start`, if present
 * @returns the tokens; `start` if the value is not a usage or names no tokens
 */
export function decodeUsage(usage: unknown, start: Usage | null = null): Usage | null {
  if (!isObject(usage)) return start;
  const { iterations } = usage;
  const beside = besideMessage(iterations);
  collectNumbers(iterations === undefined ? usage : { ...usage, iterations: null }, wanted, found);
  if (found[0] === -1 && found[1] === -1) return start;
  return charged(found, servedBy(usage.speed, usage.service_tier, usage.inference_geo), beside, start);
}

/** If a usage has this member, the numbers in it must be told apart from the usage's own. */
const iterationsKey = Buffer.from('"iterations"');

const typesBeside: ReadonlySet<unknown> = new Set(['compaction', 'advisor_message']);

/**
 * Returns what the vendor bills beside the tokens of the message itself: compactions of the conversation, and the
 * advice of another model (https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage).
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

/**
 * The parts of usages that are sums. An event that reports one of the two parts again replaces it; without this, the
 * part would be added to itself.
 */
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
 * Adds up a usage. Input that is zero at the end of a stream counts as omitted: it does not reduce the earlier input.
 * @param numbers in the order of `wanted`, each -1 if missing
 */
function sum(numbers: readonly number[], { tier, geo }: Served, start: Usage | null): Usage {
  const { 0: plain = -1, 1: output = -1, 2: read = -1, 3: all = -1, 4: reasoning = -1 } = numbers;
  const { 5: searches = -1, 6: hour = -1, 7: minutes = -1 } = numbers;
  // If only its parts are reported, the cache writes are their sum.
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
 * Writes the JSON text of a `usage` object. Clients require it: unknown numbers are zeros.
 * @param searches number of searches in the answer, used if the upstream has not counted them
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

/** Returns the input without cache reads and writes, which the protocol counts separately. */
function plainInput(usage: Usage | null): number {
  return usage === null ? 0 : Math.max(0, usage.input - usage.cached - usage.cacheWritten);
}
