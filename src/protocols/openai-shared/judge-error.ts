import { judgingEvents } from '../../conversation/stream-rules.js';
import { parseObject } from '../../wire/json.js';
import { upstreamError } from '../error-formats/upstream-error.js';

/** The `StreamRules.judgeStart` of endpoints that do not stream, with errors in the common form. */
export const judgeError = judgingEvents(
  (_event, data) => upstreamError(parseObject(data)?.error) ?? 'meaningful',
);
