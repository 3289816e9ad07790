import type { JsonObject } from '../wire/json.js';
import { needleOf } from '../wire/json-skip.js';
import { summedToken, tagSignature, tokenAsBytes, wholeToken } from './signature.js';

/*
 * Chat has no member for a signature of reasoning, and not all clients of other protocols return the one that theirs
 * has. But every client returns the ids of calls unchanged. Tokens of `signature.ts` are therefore appended to an id:
 * `<id>__thought__<base64url>`, repeated for several. Other gateways append the raw signature of a generateContent
 * upstream in the same way (https://github.com/BerriAI/litellm/pull/16895).
 *
 * Some clients truncate long ids or remove characters (Factory's droid keeps 24 characters, Roo Code 64 with a hash at
 * the end). A token in an id therefore has a checksum: the vendor would refuse a damaged signature.
 */

export const carryingSeparator = '__thought__';
/** Present in every body that contains an id with a token of this gateway. */
const ownMark = `${carryingSeparator}Z3cx`;
export const carryingMark = needleOf(ownMark);
/** Maximum length of an id that is given to clients, which send it twice for each call. */
const longestId = 16 * 1024;
/** Maximum length of tokens beside a call. Longer ones are not carried at all. */
const longestCarried = 256 * 1024;
/** Maximum number of tokens of one call. An id with more was not made by this gateway. */
export const mostTokens = 16;
/** Minimum length of a vendor's signature in an id. Anything shorter is a remnant that a client left. */
const shortestSignature = 16;
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/**
 * Ends the id of a call that no reasoning led to, where a vendor may require some before the call. It is the beginning of a token
 * without the rest, so that most ids stay within the 64 characters that some clients keep.
 */
const withoutReasoning = ownMark;

/** Marks the id of a call as one that no reasoning led to. */
export function markWithoutReasoning(id: string): string {
  return id + withoutReasoning;
}

/** @returns the id with the tokens, or null if they are too many or too long for it */
export function carryInId(id: string, tokens: readonly string[]): string | null {
  if (tokens.length > mostTokens) return null;
  let carrying = id;
  for (const token of tokens)
    carrying += carryingSeparator + Buffer.from(summedToken(token)).toString('base64url');
  return carrying.length > longestId ? null : carrying;
}

/**
 * @returns the tokens as one text for a member beside the call, or null if they are too many or too long for that as
 * well
 */
export function carryBeside(tokens: readonly string[]): string | null {
  if (tokens.length > mostTokens) return null;
  const carried = tokens.map(tokenAsBytes).join(carryingSeparator);
  return carried.length > longestCarried ? null : carried;
}

export interface CutId {
  readonly id: string;
  readonly tokens: readonly string[];
}

/**
 * Splits an id from the tokens that it may carry, or from the raw signature of a generateContent upstream. If a client
 * has altered them, there are none.
 */
export function cutId(given: string): CutId {
  // The id before the mark may carry the raw signature of another gateway.
  const carrying = given.endsWith(withoutReasoning) ? given.slice(0, -withoutReasoning.length) : given;
  const at = carrying.indexOf(carryingSeparator);
  const isCarrying = at > 0 && carrying.length - at - carryingSeparator.length >= shortestSignature;
  const tokens = isCarrying ? tokensIn(carrying.slice(at + carryingSeparator.length)) : [];
  if (tokens.length === 0) return { id: withoutOwnTokens(given), tokens };
  return { id: carrying.slice(0, at), tokens };
}

/** Tells whether an id came without the tokens that it carried, since its client had altered it. */
export function hasLostTokens(carrying: string, { id, tokens }: CutId): boolean {
  return tokens.length === 0 && id !== carrying && !carrying.endsWith(withoutReasoning);
}

/** Returns the tokens in the member beside a call, or that of the raw signature in it. Empty if it is neither. */
export function tokensIn(carried: string): readonly string[] {
  const pieces = carried.split(carryingSeparator, mostTokens + 1);
  if (pieces.length > mostTokens || !pieces.every((piece) => base64.test(piece))) return [];
  const own = pieces.map(wholeToken);
  if (own.every((token) => token === undefined)) return pieces.map(signatureOfOther);
  // If one token is damaged, the others are dropped as well: they may only be valid together.
  return own.every((token) => typeof token === 'string') ? own : [];
}

function signatureOfOther(value: string): string {
  return tagSignature({ protocol: 'generateContent', model: '', value, redacted: false });
}

/** Removes the tokens of this gateway from an id. Those of another gateway are left for that to remove. */
export function withoutOwnTokens(carrying: string): string {
  const at = carrying.indexOf(ownMark);
  return at > 0 ? carrying.slice(0, at) : carrying;
}

/**
 * Removes the tokens from the id of a call in an object, since upstreams must not receive them.
 * @param member name of the member with the id; anything but text is left unchanged
 */
export function withBareId(holder: JsonObject, member: string): JsonObject {
  const id = holder[member];
  const bare = typeof id === 'string' ? withoutOwnTokens(id) : id;
  return bare === id ? holder : { ...holder, [member]: bare };
}

/** Makes an id that is valid in a protocol and keeps its tokens. @param legal makes an id without tokens valid */
export function legalCarryingId(id: string, legal: (bare: string) => string): string {
  const bare = withoutOwnTokens(id);
  return legal(bare) + id.slice(bare.length);
}
