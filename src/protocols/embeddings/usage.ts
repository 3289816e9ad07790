import { createInputUsageReader } from '../openai-shared/usage.js';

/** Finds the `usage` of an answer; see `UsageReader.lastUsage`. */
export const { lastUsage: embeddingUsage } = createInputUsageReader();
