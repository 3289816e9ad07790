import { tierOf, type Usage, withCharges } from '../../../conversation/usage.js';
import { countOf, isObject, type JsonObject } from '../../../wire/json.js';
import {
  countsIn,
  createUsageReader,
  partsOf,
  tokenNames,
  withReasoning,
} from '../../openai-shared/usage.js';

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
  const counts = countsIn(value, tokenNames);
  if (counts === null) return null;
  const input = isObject(value.input_tokens_details) ? value.input_tokens_details : {};
  const output = isObject(value.output_tokens_details) ? value.output_tokens_details : {};
  const usage = withReasoning(countOf(value.total_tokens), {
    input: counts.input,
    output: counts.output,
    cached: countOf(input.cached_tokens),
    cacheWritten: countOf(input.cache_write_tokens),
    reasoning: countOf(output.reasoning_tokens),
  });
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
