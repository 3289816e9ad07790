import type { AnswerCharges } from '../../../conversation/stream-rules.js';
import { tierOf, type Usage, withCharges } from '../../../conversation/usage.js';
import { countOf, isObject, type JsonObject, listOf, parseObject } from '../../../wire/json.js';
import { contains, lastWordWithin, needleOf, textStart } from '../../../wire/json-skip.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../../wire/sse.js';
import { createUsageReader, partsOf, tokenNames } from '../../openai-shared/usage.js';
import { isSearch } from '../search-item.js';

const { lastUsageWithin } = createUsageReader(tokenNames);
/** A response is an answer of its own, or a member of the events of its stream. */
export const levelsOfAnswer = 1;
export const levelsOfEvent = 2;

/**
 * Finds the `usage` of a response in the bytes of an answer. It repeats the schemas of its tools and the metadata of its
 * request, in which anything may have that name.
 * @returns the tokens, or null when there is no such object or it names none
 */
export function usageOfAnswer(bytes: Buffer): Usage | null {
  return lastUsageWithin(bytes, levelsOfAnswer);
}

/** The same in the end of a stream. */
export function usageOfStream(bytes: Buffer): Usage | null {
  return lastUsageWithin(bytes, levelsOfEvent);
}

/**
 * Reads the `usage` of a parsed response.
 * @param searches among the response's items, which alone tell of them
 * @returns null when it is none or names no tokens
 */
export function decodeUsage({ usage: value, service_tier }: JsonObject, searches = 0): Usage | null {
  if (!isObject(value)) return null;
  if (typeof value.input_tokens !== 'number' && typeof value.output_tokens !== 'number') return null;
  const input = isObject(value.input_tokens_details) ? value.input_tokens_details : {};
  const output = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const usage = {
    input: countOf(value.input_tokens),
    output: countOf(value.output_tokens),
    cached: countOf(input.cached_tokens),
    cacheWritten: countOf(input.cache_write_tokens),
    reasoning: countOf(output.reasoning_tokens),
  };
  return withCharges(usage, { searches, parts: partsOf(value), tier: tierOf(service_tier) });
}

/** The JSON text of a response's `usage`. Clients want the object: for what is not known it is all zeros. */
export function encodeUsage(usage: Usage | null): string {
  const { input = 0, output = 0, cached = 0, cacheWritten = 0, reasoning = 0 } = usage ?? {};
  return (
    `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cached},"cache_write_tokens":${cacheWritten}},` +
    `"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":${reasoning}},"total_tokens":${input + output}}`
  );
}

/** What many searches have found makes an answer long, and the usage at its end does not count them. */
export const noteBytes = 8 * 1024 * 1024;

/** As it stands in an item: a quoted text cannot stand inside another one. */
const searchType = Buffer.from('"web_search_call"');
const tierKey = needleOf('"service_tier"');
const itemDone = 'response.output_item.done';
/** An event's name, or the type in its data, is within so many bytes. */
const headBytes = 128;
const OPEN_BRACE = 0x7b;

/**
 * Takes note of the searches of an answer, which its usage does not count, and of the tier that it names last; see
 * `StreamRules.noteCharges`.
 */
export function noteCharges(run: Buffer, charges: AnswerCharges): void {
  const isAnswer = run[textStart(run)] === OPEN_BRACE;
  if (contains(run, tierKey))
    charges.tier = tierOf(lastWordWithin(run, tierKey, isAnswer ? levelsOfAnswer : levelsOfEvent));
  let at = run.indexOf(searchType);
  if (at === -1) return;
  if (isAnswer) {
    const output = parseObject(run.toString('utf8'))?.output;
    charges.searches += listOf(output).filter(isSearch).length;
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    // The events around it, and the last one, tell of the same search.
    if (run.toString('latin1', start, Math.min(end, start + headBytes)).includes(itemDone)) {
      const body = parseObject(parseEvent(run.toString('utf8', start, end)).data ?? '');
      if (isObject(body?.item) && isSearch(body.item)) charges.searches++;
    }
    at = run.indexOf(searchType, end);
  }
}
