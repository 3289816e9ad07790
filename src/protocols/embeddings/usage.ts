import { createInputUsageReader } from '../../conversation/openai-usage.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

/** Finds the `usage` of an answer; see `UsageReader.lastUsage`. */
export const { lastUsage: embeddingUsage } = createInputUsageReader({
  numberNames,
  readNumbers,
  lastObjectStart,
});
