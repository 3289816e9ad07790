import type { Usage } from '../../../conversation/usage.js';
import { createUsageReader, tokenNames } from '../../openai-shared/usage.js';

/** `decodeTokens` reads the tokens of a parsed response itself; see `decodeUsage`. */
export const { lastUsageWithin, usageOf: decodeTokens } = createUsageReader(tokenNames);
/** A response is a whole answer, or a member of the events of its stream. */
export const levelsOfAnswer = 1;
export const levelsOfEvent = 2;

/**
 * Finds the `usage` of a response in the bytes of an answer. The answer repeats the schemas of its tools and the
 * metadata of its request, which may contain members of that name.
 * @returns the tokens, or null if there is no such object or it names none
 */
export function usageOfAnswer(bytes: Buffer): Usage | null {
  return lastUsageWithin(bytes, levelsOfAnswer);
}

/** Finds the same in the end of a stream. */
export function usageOfStream(bytes: Buffer): Usage | null {
  return lastUsageWithin(bytes, levelsOfEvent);
}

/**
 * Returns the JSON text of a response's `usage`. Clients require the object: all numbers are zero if the usage is
 * unknown.
 */
export function encodeUsage(usage: Usage | null): string {
  const { input = 0, output = 0, cached = 0, cacheWritten = 0, reasoning = 0 } = usage ?? {};
  return (
    `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cached},"cache_write_tokens":${cacheWritten}},` +
    `"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":${reasoning}},"total_tokens":${input + output}}`
  );
}
