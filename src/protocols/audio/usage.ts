import { createUsageReader, tokenNames } from '../openai-shared/usage.js';

/**
 * Finds the last `usage` in the bytes of an answer or in the end of a stream; one that counts seconds in place of tokens
 * is none.
 */
export const { lastUsage: audioUsage } = createUsageReader(tokenNames);
