import type { Usage } from '../../conversation/usage.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

const needle = Buffer.from('"usage"');
const wanted = numberNames(['prompt_tokens', 'completion_tokens', 'cached_tokens', 'reasoning_tokens']);
const found: number[] = [];

/**
 * Finds the last `usage` object in the bytes of an answer or in the end of a stream. A quoted `"usage"` cannot
 * occur inside a JSON string, where its quotes would be escaped, so no parse of the rest is needed.
 * @returns the tokens that it names, or null when there is none or it names none
 */
export function lastUsage(bytes: Buffer): Usage | null {
  const start = lastObjectStart(bytes, needle);
  return start === -1 ? null : usageAt(bytes, start);
}

/** Reads the `usage` object that opens at `start`; null when it names no tokens. */
export function usageAt(bytes: Buffer, start: number): Usage | null {
  if (!readNumbers(bytes, start, wanted, found)) return null;
  const [input = -1, output = -1, cached = -1, reasoning = -1] = found;
  if (input === -1 && output === -1) return null;
  return {
    input: Math.max(0, input),
    output: Math.max(0, output),
    cached: Math.max(0, cached),
    reasoning: Math.max(0, reasoning),
  };
}
