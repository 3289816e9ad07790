import type { Usage } from '../../../conversation/usage.js';
import { createUsageReader, tokenNames } from '../../openai-shared/usage.js';

/** What it reads of a parsed response wants the searches among its items, which alone tell of them. */
export const { lastUsageWithin, usageOf: decodeUsage } = createUsageReader(tokenNames);
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

/** The JSON text of a response's `usage`. Clients want the object: for what is not known it is all zeros. */
export function encodeUsage(usage: Usage | null): string {
  const { input = 0, output = 0, cached = 0, cacheWritten = 0, reasoning = 0 } = usage ?? {};
  return (
    `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cached},"cache_write_tokens":${cacheWritten}},` +
    `"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":${reasoning}},"total_tokens":${input + output}}`
  );
}
