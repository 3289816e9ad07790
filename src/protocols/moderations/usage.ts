import { createInputUsageReader } from '../../conversation/openai-usage.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

/** Finds the `usage` of an answer, which the original does not have; see `UsageReader.lastUsage`. */
export const { lastUsage: moderationUsage } = createInputUsageReader({
  numberNames,
  readNumbers,
  lastObjectStart,
});
