import type { Usage } from '../../conversation/usage.js';
import { type NumberNames, numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

const usageKey = Buffer.from('"usage"');
const usageNames = numberNames(['prompt_tokens', 'total_tokens']);
const metaKey = Buffer.from('"meta"');
/** In `tokens`, or in `billed_units`, where search units may stand in place of tokens. */
const metaNames = numberNames(['input_tokens']);

/**
 * Finds the tokens of an answer in its `usage` (Jina) or its `meta` (Cohere). All of them are input.
 * @returns null when neither names any
 */
export function rerankUsage(answer: Buffer): Usage | null {
  const input = mostOf(answer, usageKey, usageNames) ?? mostOf(answer, metaKey, metaNames);
  return input === null ? null : { input, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
}

/** The largest of the wanted numbers in the last object of that name, or null when it has none. */
function mostOf(answer: Buffer, key: Buffer, wanted: NumberNames): number | null {
  const found: number[] = [];
  const start = lastObjectStart(answer, key);
  if (start === -1 || !readNumbers(answer, start, wanted, found)) return null;
  const most = Math.max(...found);
  return most === -1 ? null : most;
}
