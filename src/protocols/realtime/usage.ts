import type { Usage } from '../../conversation/usage.js';
import { isObject, numberOrNull, parseObject } from '../../wire/json.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';

const reader = createUsageReader(tokenNames);
const responseDone = Buffer.from('"response.done"');
/** What the client has said, as text: of tokens or seconds of its own. */
const transcribed = Buffer.from('"conversation.item.input_audio_transcription.completed"');
/** A response's usage is that of a member of its event, and its metadata may say anything. */
const levels = 2;
/** An event's type stands in its first bytes, before everything that may be long. */
const typeWithin = 256;

/**
 * @returns what a server event says that a response, or the transcript of what was said, has used; null for every other
 * event, and where seconds are counted
 */
export function usageOfEvent(event: Buffer): Usage | null {
  const begin = event.length > typeWithin ? event.subarray(0, typeWithin) : event;
  return begin.includes(responseDone) || begin.includes(transcribed)
    ? reader.lastUsageWithin(event, levels)
    : null;
}

/** @returns the seconds that a server event says to have been made a text of, or 0 */
export function secondsOfEvent(event: Buffer): number {
  const begin = event.length > typeWithin ? event.subarray(0, typeWithin) : event;
  if (!begin.includes(transcribed)) return 0;
  const usage = parseObject(event.toString('utf8'))?.usage;
  return isObject(usage) ? Math.max(0, numberOrNull(usage.seconds) ?? 0) : 0;
}
