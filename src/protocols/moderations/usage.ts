import { createInputUsageReader } from '../openai-shared/usage.js';

/** Finds the `usage` of an answer, which the original does not have; see `UsageReader.lastUsage`. */
export const { lastUsage: moderationUsage } = createInputUsageReader();
