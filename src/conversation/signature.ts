import { crc32 } from 'node:zlib';
import { type Needle, needleOf } from '../wire/json-skip.js';
import { type TextProtocolName, textProtocols } from './request.js';

/*
 * Signatures of reasoning, and reasoning that its vendor encrypted, are only meaningful to their vendor. A client of
 * another protocol carries them in its own opaque member, as a token that states their origin: `gw1.<s or
 * r>.<protocol>.<model in base64url>.<the vendor's own text>`. The second part is `c` for a signature on a tool call,
 * because some clients put all reasoning of an answer before its text.
 *
 * Some vendors refuse a signature without exactly the words that it signed. If the client may not return these, the
 * token contains them: `gw1.t.….<words in base64url>.<…>`. If they were too long for that, it is `gw1.w.…`, and is only
 * valid beside the words.
 *
 * A token is no secret and proves nothing: a client could have sent its contents to the same place without the gateway.
 */

const tag = 'gw1.';
/** Opaque value in the search results that a client of the messages protocol receives. It is not for any upstream. */
export const searchToken = `${tag}search`;
/** Beginning of a token encoded as base64: the first three bytes of the tag, in both alphabets. */
const bytesTag = 'Z3cx';
/** Every body with a token in a string contains one of these. */
export const tokenMarks: readonly Needle[] = [needleOf(`"${tag}`), needleOf(`"${bytesTag}`)];

/** What the signatures of a protocol's upstreams sign, or hold. `nothing`: its reasoning is text without a signature. */
export const signedBy: Readonly<
  Record<TextProtocolName, 'nothing' | 'words' | 'part' | 'encryptedReasoning'>
> = {
  chat: 'nothing',
  responses: 'encryptedReasoning',
  // Refused beside other words than those signed, and without the words.
  messages: 'words',
  // A signature on a text does not belong to the call after it.
  generateContent: 'part',
};

export interface Signature {
  /** Protocol of the upstream that made the signature. */
  readonly protocol: TextProtocolName;
  /** Model that made the signature, by its name at the upstream; for what only its account can read, as `accountOf` has it. */
  readonly model: string;
  /** The vendor's own text. */
  readonly value: string;
  /** The value is encrypted reasoning, not the signature of readable reasoning. */
  readonly redacted: boolean;
  /** The signed words, if the token contains them. */
  readonly words?: string;
  /** The token was to contain the signed words, but they were too long. */
  readonly isWordless?: true;
  /** The signature was on a tool call. */
  readonly isOfCall?: true;
}

/** Makes the token that a client carries. */
export function tagSignature(signature: Signature): string {
  const { protocol, model, value, words } = signature;
  const name = Buffer.from(model).toString('base64url');
  if (words === undefined) return `${tag}${kindOf(signature)}.${protocol}.${name}.${value}`;
  return `${tag}t.${protocol}.${name}.${Buffer.from(words).toString('base64url')}.${value}`;
}

function kindOf({ redacted, isWordless, isOfCall }: Signature): string {
  if (redacted) return 'r';
  if (isWordless) return 'w';
  return isOfCall ? 'c' : 's';
}

/**
 * Adds the signed words to the token of a signature that is valid only beside them. Other tokens are returned unchanged.
 * @param words null if they are too long to be carried: the token then records that they are missing
 */
export function withWords(token: string, words: string | null): string {
  const signature = signatureOfWords(token);
  if (signature === null || signature.redacted || words === '') return token;
  return tagSignature(words === null ? { ...signature, isWordless: true } : { ...signature, words });
}

/** Removes the words from a token and records that they are missing. Other tokens are returned unchanged. */
export function withoutWords(token: string): string {
  const signature = untagSignature(token);
  if (signature?.words === undefined) return token;
  const { words, ...bare } = signature;
  return tagSignature(words === '' ? bare : { ...bare, isWordless: true });
}

/**
 * Replaces the missing signature of reasoning for clients that drop or refuse reasoning without one, and marks a call for which a
 * vendor may require reasoning that does not exist.
 */
export const noSignature = tagSignature({
  protocol: 'generateContent',
  model: '',
  value: '',
  redacted: false,
});

/** Encodes a token for a field of bytes. SDKs decode these as base64, and some encode them in the other alphabet. */
export function tokenAsBytes(token: string): string {
  return Buffer.from(token).toString('base64');
}

/** Returns the token in a field, as it is or as base64 in either alphabet. Null if it is not one of this gateway. */
export function tokenIn(text: string): string | null {
  if (text.startsWith(tag)) return text;
  if (!text.startsWith(bytesTag)) return null;
  const token = Buffer.from(text, 'base64').toString();
  return token.startsWith(tag) ? token : null;
}

const summedTag = 'gw1:';
/** `gw1:`, the checksum of the token without its tag, `:`, and the token without its tag. */
const summed = /^gw1:([0-9a-z]{1,7}):/;

/** Encodes a token with a checksum that detects damage. In base64 it begins like any other token. */
export function summedToken(token: string): string {
  const rest = token.slice(tag.length);
  return `${summedTag}${crc32(rest).toString(36)}:${rest}`;
}

/** @returns the token encoded in base64, null for a damaged one, and undefined for one that is not of this gateway */
export function wholeToken(base64: string): string | null | undefined {
  if (!base64.startsWith(bytesTag)) return isOfOurs(base64) ? null : undefined;
  const text = Buffer.from(base64, 'base64').toString();
  if (text.startsWith(tag)) return text;
  const [head, sum] = summed.exec(text) ?? [];
  if (head === undefined) return null;
  const rest = text.slice(head.length);
  return crc32(rest).toString(36) === sum ? tag + rest : null;
}

/** Follows the tag and the checksum in every token. */
const kindAndProtocol = new RegExp(`[.:][a-z]\\.(?:${textProtocols.join('|')})\\.`);
const signingProtocols = textProtocols.filter((protocol) => signedBy[protocol] !== 'nothing');
const unsignedProtocols = textProtocols.filter((protocol) => signedBy[protocol] === 'nothing');
const signedHead = new RegExp(`^gw1(?::[0-9a-z]{1,7})?[.:][a-z]\\.(?:${signingProtocols.join('|')})\\.`);
const unsignedHead = new RegExp(`^gw1(?::[0-9a-z]{1,7})?[.:][a-z]\\.(?:${unsignedProtocols.join('|')})\\.`);
/** Number of base64 characters that contain this, even if some before it are lost. */
const lettersOfHead = 64;
/** Number of bytes with which a token is recognized, as it is or as base64. */
export const tokenHeadBytes = lettersOfHead;

/** Length of a text in bytes, for each of its base64. */
const decodedShare = 3 / 4;

/**
 * Returns how much text the upstream gets for each byte of a token, as it is or as base64: none of one with a signature or
 * encrypted reasoning. Others hold reasoning in base64, which its upstream gets as text. Null if it is no token.
 * @param head its first `tokenHeadBytes`. JSON escapes nothing in what is read of it
 */
export function textShare(head: string): number | null {
  const isPlain = head.startsWith(tag);
  const plain = isPlain ? head : Buffer.from(head, 'base64').toString('latin1');
  if (signedHead.test(plain)) return 0;
  if (!unsignedHead.test(plain)) return null;
  return isPlain ? decodedShare : decodedShare * decodedShare;
}

/** Returns whether base64 begins as a token does, and not as one with a signature or encrypted reasoning. */
export function isUnsignedToken(head: string): boolean {
  return head.startsWith(bytesTag) && textShare(head.slice(0, tokenHeadBytes)) !== 0;
}

/** Returns whether a text without the gateway's tag is a beginning of the tag, or a token with a damaged tag. */
function isOfOurs(base64: string): boolean {
  if (bytesTag.startsWith(base64)) return true;
  const head = base64.slice(0, lettersOfHead);
  // Lost characters shift the byte boundaries of those that follow.
  for (const shift of ['', 'A', 'AA', 'AAA'])
    if (kindAndProtocol.test(Buffer.from(shift + head, 'base64').toString('latin1'))) return true;
  return false;
}

/**
 * Returns the token for the value of a client's opaque member: the value itself if this gateway made it, or the value
 * tagged with the client's protocol if an upstream of that did. Null for no value and for `noSignature`.
 */
export function carriedSignature(
  protocol: TextProtocolName,
  value: string,
  redacted: boolean,
): string | null {
  const token = tokenIn(value);
  if (value === '' || token === noSignature) return null;
  return token ?? tagSignature({ protocol, model: '', value, redacted });
}

/** @returns the contents of a token, as it is or as base64, or null if it is not one of this gateway */
export function untagSignature(carried: string | null): Signature | null {
  const token = carried === null ? null : tokenIn(carried);
  if (token === null) return null;
  const kindEnd = token.indexOf('.', tag.length);
  const protocolEnd = token.indexOf('.', kindEnd + 1);
  const modelEnd = token.indexOf('.', protocolEnd + 1);
  if (kindEnd === -1 || protocolEnd === -1 || modelEnd === -1) return null;
  const name = token.slice(kindEnd + 1, protocolEnd);
  const protocol = textProtocols.find((each) => each === name);
  if (protocol === undefined) return null;
  const kind = token.slice(tag.length, kindEnd);
  const model = Buffer.from(token.slice(protocolEnd + 1, modelEnd), 'base64url').toString();
  const rest = token.slice(modelEnd + 1);
  if (kind === 'w') return { protocol, model, value: rest, redacted: false, isWordless: true };
  if (kind === 'c') return { protocol, model, value: rest, redacted: false, isOfCall: true };
  if (kind !== 't') return { protocol, model, value: rest, redacted: kind === 'r' };
  const wordsEnd = rest.indexOf('.');
  if (wordsEnd === -1) return null;
  const words = Buffer.from(rest.slice(0, wordsEnd), 'base64url').toString();
  return { protocol, model, value: rest.slice(wordsEnd + 1), redacted: false, words };
}

/** Returns whether a token is encrypted reasoning, with no readable text beside it. */
export function isRedacted(token: string): boolean {
  return untagSignature(token)?.redacted ?? false;
}

/** Returns the contents of a token whose signature is valid only beside the words that it signed, else null. */
export function signatureOfWords(token: string | null): Signature | null {
  const signature = untagSignature(token);
  return signature !== null && signedBy[signature.protocol] === 'words' ? signature : null;
}

/** Returns whether a token holds the signature of one part of an answer. */
export function isOfPart(token: string): boolean {
  const signature = untagSignature(token);
  return signature !== null && signedBy[signature.protocol] === 'part';
}

/** Returns whether a token holds a vendor's signature, which the text of the reasoning cannot replace. */
export function isOfVendor(token: string | null): boolean {
  if (token === null) return false;
  const signature = untagSignature(token);
  return signature === null || signedBy[signature.protocol] !== 'nothing';
}

/**
 * Returns the name of a model with a hash of its upstream's name, which clients do not learn. What a vendor has encrypted for one
 * account is refused by another, and two upstreams may be two accounts (https://github.com/openai/codex/issues/8100).
 * The hash has no secret, so that a token outlives a restart: who guesses the name can see that it is the right one.
 */
export function accountOf({ model, upstream }: { model: string; upstream: string }): string {
  return upstream === '' ? model : `${model} ${crc32(upstream).toString(36)}`;
}

/**
 * Returns whether a signature is of use to a target of its protocol. What a client of the protocol has from an upstream itself
 * says nothing of its origin, and is. A token of an earlier release names the model alone: any upstream may have made it.
 */
export function isFor({ protocol, model }: Signature, target: { model: string; upstream: string }): boolean {
  const isKnown = signedBy[protocol] === 'encryptedReasoning' && model !== '' && model !== target.model;
  return !isKnown || model === accountOf(target);
}

/** @returns the contents of a token that an upstream of this protocol made, else null: its reasoning is then dropped */
export function signatureFor(protocol: TextProtocolName, token: string | null): Signature | null {
  const signature = untagSignature(token);
  return signature?.protocol === protocol ? signature : null;
}
