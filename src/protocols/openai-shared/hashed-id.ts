import { createHash } from 'node:crypto';

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
