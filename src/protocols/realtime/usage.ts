import type { Usage } from '../../conversation/usage.js';
import { isObject, numberOrNull, parseObject } from '../../wire/json.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';
import { responseDone, transcribed, typeOfEvent } from './event-type.js';

const reader = createUsageReader(tokenNames);
/** A response's usage is that of a member of its event, and its metadata may say anything. */
const levels = 2;

/**
 * @returns what a server event says that a response, or the transcript of what was said, has used; null for every other
 * event, and where seconds are counted
 */
export function usageOfEvent(event: Buffer): Usage | null {
  const type = typeOfEvent(event);
  return type === responseDone || type === transcribed ? reader.lastUsageWithin(event, levels) : null;
}

/** @returns the seconds that a server event says to have been made a text of, or 0 */
export function secondsOfEvent(event: Buffer): number {
  if (typeOfEvent(event) !== transcribed) return 0;
  const usage = parseObject(event.toString('utf8'))?.usage;
  return isObject(usage) ? Math.max(0, numberOrNull(usage.seconds) ?? 0) : 0;
}
