import { createUsageReader, tokenNames } from '../openai-shared/usage.js';

/** Finds the last `usage` in the bytes of an answer or in the end of a stream. */
export const { lastUsage } = createUsageReader(tokenNames);
