import { createHash } from 'node:crypto';
import { isLegalCallId } from '../../conversation/call-id.js';

const hashLength = 32;
/** Longest id of a user that chat and responses take. Source: OpenAI's API reference, `safety_identifier`. */
const longestUser = 64;

/** Letters, digits, `-` and `_` that stand for a text. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, hashLength);
}

/** The user by an id as the protocols take it; of a longer one, what always stands for it. */
export function userId(user: string): string {
  return user.length > longestUser ? hashOf(user) : user;
}

/** Longest id of a call that OpenAI takes in chat: its own answer to a longer one names the length. */
const longestChatCallId = 40;

/** The id of a call as chat takes it, of a longer one what always stands for it: a call and its result still meet. */
export function chatCallId(id: string): string {
  return id.length > longestChatCallId ? `call_${hashOf(id)}` : id;
}

/** The same as responses takes it, which asks for legal characters, too. */
export function responsesCallId(id: string): string {
  return isLegalCallId(id) ? id : `call_${hashOf(id)}`;
}
