import { createHash } from 'node:crypto';
import { isLegalCallId } from '../../conversation/tool-calls.js';

const hashLength = 32;
/** Longest id of a user that chat and responses take. Source: OpenAI's API reference, `safety_identifier`. */
const longestUser = 64;

/** Returns a hash of a text in letters, digits, `-` and `_`. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, hashLength);
}

/** Returns a user's id as the protocols accept it. A longer id is always replaced by the same hash. */
export function userId(user: string): string {
  return user.length > longestUser ? hashOf(user) : user;
}

/** Longest id of a call that OpenAI takes in chat. Source: its error message for a longer one. */
const longestChatCallId = 40;

/**
 * Returns the id of a call as chat accepts it. A longer id is always replaced by the same one, so a call and its result
 * still match.
 */
export function chatCallId(id: string): string {
  return id.length > longestChatCallId ? `call_${hashOf(id)}` : id;
}

/** Returns the same for responses, which also restricts the characters. */
export function responsesCallId(id: string): string {
  return isLegalCallId(id) ? id : `call_${hashOf(id)}`;
}
