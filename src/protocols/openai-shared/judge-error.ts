import { judgingEvents } from '../../conversation/stream-rules.js';
import { parseObject } from '../../wire/json.js';
import { upstreamError } from '../error-formats/upstream-error.js';

/** The `StreamRules.judgeStart` of endpoints that do not stream, and whose errors look like any other's. */
export const judgeError = judgingEvents(
  (_event, data) => upstreamError(parseObject(data)?.error) ?? 'meaningful',
);
