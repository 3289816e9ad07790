import { createUsageReader } from '../../conversation/openai-usage.js';
import { numberNames, readNumbers } from '../../wire/json-numbers.js';
import { lastObjectStart } from '../../wire/json-object.js';

/** How usage is read out of bytes; see `UsageReader`. */
export const { lastUsage, usageAt } = createUsageReader({ numberNames, readNumbers, lastObjectStart });
