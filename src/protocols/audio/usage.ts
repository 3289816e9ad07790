import { createUsageReader, tokenNames } from '../../conversation/openai-usage.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

/**
 * Finds the last `usage` in the bytes of an answer or in the end of a stream; one that counts seconds in place of tokens
 * is none.
 */
export const { lastUsage: audioUsage } = createUsageReader(
  { numberNames, readNumbers, lastObjectStart },
  tokenNames,
);
