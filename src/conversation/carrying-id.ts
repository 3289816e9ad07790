import type { JsonObject } from '../wire/json.js';
import { needleOf } from '../wire/json-skip.js';
import { summedToken, tagSignature, tokenAsBytes, wholeToken } from './signature.js';

/*
 * Chat has no field for a signature of reasoning, and clients of other protocols do not all return theirs, but every one
 * returns the ids of calls as it got them. So tokens of `signature.ts` stand at the end of an id:
 * `<id>__thought__<base64url>`, several one after another. Other gateways write the signature of a generateContent upstream
 * there as it is (https://github.com/BerriAI/litellm/pull/16895).
 *
 * Some clients cut long ids off or take letters out of them (Factory's droid keeps 24 characters, Roo Code 64 with a hash at
 * the end). The vendor would refuse what is left of a signature, so a token in an id has a checksum.
 */

const separator = '__thought__';
/** What a body must hold for an id with a token of ours to be in it. */
const ownMark = `${separator}Z3cx`;
export const carryingMark = needleOf(ownMark);
/** Longest id that clients are given: it comes back twice for each call. */
const longestId = 16 * 1024;
/** What is longer than this beside a call is not carried at all. */
const longestCarried = 256 * 1024;
/** Tokens of one call; an id that seems to have more is none of ours. */
export const mostTokens = 16;
/** What is shorter than this in an id is no signature of any vendor, but what a client has left of something. */
const shortestSignature = 16;
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** @returns the id with the tokens, or null where they are too many or too long for it */
export function carryInId(id: string, tokens: readonly string[]): string | null {
  if (tokens.length > mostTokens) return null;
  let carrying = id;
  for (const token of tokens) carrying += separator + Buffer.from(summedToken(token)).toString('base64url');
  return carrying.length > longestId ? null : carrying;
}

/** @returns the tokens as one text for a field beside the call, or null where they are too many or too long even for that */
export function carryBeside(tokens: readonly string[]): string | null {
  if (tokens.length > mostTokens) return null;
  const carried = tokens.map(tokenAsBytes).join(separator);
  return carried.length > longestCarried ? null : carried;
}

export interface CutId {
  readonly id: string;
  readonly tokens: readonly string[];
}

/**
 * Takes an id apart that may carry tokens, or the signature of a generateContent upstream as it is. Where a client has
 * changed it, it carries none.
 */
export function cutId(carrying: string): CutId {
  const at = carrying.indexOf(separator);
  const isCarrying = at > 0 && carrying.length - at - separator.length >= shortestSignature;
  const tokens = isCarrying ? tokensIn(carrying.slice(at + separator.length)) : [];
  if (tokens.length === 0) return { id: withoutOwnTokens(carrying), tokens };
  return { id: carrying.slice(0, at), tokens };
}

/** The tokens in the field beside a call, or that of the signature which it is; none where it is neither. */
export function tokensIn(carried: string): readonly string[] {
  const pieces = carried.split(separator, mostTokens + 1);
  if (pieces.length > mostTokens || !pieces.every((piece) => base64.test(piece))) return [];
  const own = pieces.map(wholeToken);
  if (own.every((token) => token === undefined)) return pieces.map(signatureOfOther);
  // Those that are whole may be of use only together with one that is not.
  return own.every((token) => typeof token === 'string') ? own : [];
}

function signatureOfOther(value: string): string {
  return tagSignature({ protocol: 'generateContent', model: '', value, redacted: false });
}

/** An id without the tokens that this gateway put there: what another one put there is for it to take out. */
export function withoutOwnTokens(carrying: string): string {
  const at = carrying.indexOf(ownMark);
  return at > 0 ? carrying.slice(0, at) : carrying;
}

/**
 * An object without the tokens that the id of a call in it carries, which are not for an upstream.
 * @param member that holds the id; one that is no text stays as it is
 */
export function withBareId(holder: JsonObject, member: string): JsonObject {
  const id = holder[member];
  const bare = typeof id === 'string' ? withoutOwnTokens(id) : id;
  return bare === id ? holder : { ...holder, [member]: bare };
}

/** An id as a protocol has ids of calls, with the tokens that it carries. @param legal makes one so that carries none */
export function legalCarryingId(id: string, legal: (bare: string) => string): string {
  const bare = withoutOwnTokens(id);
  return legal(bare) + id.slice(bare.length);
}
