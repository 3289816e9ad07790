import { crc32 } from 'node:zlib';
import { type Needle, needleOf } from '../wire/json-skip.js';
import { type TextProtocolName, textProtocols } from './request.js';

/*
 * Signatures of reasoning (and reasoning that its vendor encrypted) mean something to their vendor alone. A client of
 * another protocol carries them in its own opaque field, as a token that says where they belong:
 * `gw1.<s or r>.<protocol>.<model in base64url>.<the vendor's own text>`, with `c` for what stood on a call of a tool,
 * since some clients put all reasoning of an answer before its text. A vendor that refuses a signature without the very
 * words that it signed has them in the token where the client may not return them: `gw1.t.….<words in base64url>.<…>`, or
 * `gw1.w.…` where they were too long for that: then it is of use beside the words alone. A token is no secret and proves
 * nothing: what is in it goes where the client could have sent it without the gateway.
 */

const tag = 'gw1.';
/** Stands in what is opaque of a search that a client of the messages protocol is told of. It is for no upstream. */
export const searchToken = `${tag}search`;
/** How a token begins that is written as base64: the first three bytes of the tag, in both alphabets. */
const bytesTag = 'Z3cx';
/** One of these stands in every body in which a token is a string. */
export const tokenMarks: readonly Needle[] = [needleOf(`"${tag}`), needleOf(`"${bytesTag}`)];

export interface Signature {
  /** Protocol of the upstream that made it. */
  readonly protocol: TextProtocolName;
  /** Model that made it, by its name at the upstream. */
  readonly model: string;
  /** The vendor's own text. */
  readonly value: string;
  /** The value is reasoning in encrypted form, not the signature of a readable one. */
  readonly redacted: boolean;
  /** The words that it signs, where the token carries them. */
  readonly words?: string;
  /** It signs words that the token was to carry and could not. */
  readonly isWordless?: true;
  /** It stood on a call of a tool. */
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
 * The token of what a messages upstream signed with its words in it; any other as it is, and so it is without words.
 * @param words null for those that are too long to be carried
 */
export function withWords(token: string, words: string | null): string {
  const signature = signatureFor('messages', token);
  if (signature === null || signature.redacted || words === '') return token;
  return tagSignature(words === null ? { ...signature, isWordless: true } : { ...signature, words });
}

/** A token that says of the words which it carries only that there are some; any other as it is. */
export function withoutWords(token: string): string {
  const signature = untagSignature(token);
  if (signature?.words === undefined) return token;
  const { words, ...bare } = signature;
  return tagSignature(words === '' ? bare : { ...bare, isWordless: true });
}

/** Stands for the signature of reasoning that has none, where clients leave out or refuse reasoning without one. */
export const noSignature = tagSignature({
  protocol: 'generateContent',
  model: '',
  value: '',
  redacted: false,
});

/** A token for a field that is bytes: SDKs decode it as base64, and do not all write it in the same alphabet again. */
export function tokenAsBytes(token: string): string {
  return Buffer.from(token).toString('base64');
}

/** The token that a field holds, as it is or as base64 in either alphabet, or null for what is none of ours. */
export function tokenIn(text: string): string | null {
  if (text.startsWith(tag)) return text;
  if (!text.startsWith(bytesTag)) return null;
  const token = Buffer.from(text, 'base64').toString();
  return token.startsWith(tag) ? token : null;
}

const summedTag = 'gw1:';
/** `gw1:`, the checksum of the token without its tag, `:`, and the token without its tag. */
const summed = /^gw1:([0-9a-z]{1,7}):/;

/** A token that tells whether it is whole. Written as base64, it begins as any other. */
export function summedToken(token: string): string {
  const rest = token.slice(tag.length);
  return `${summedTag}${crc32(rest).toString(36)}:${rest}`;
}

/** @returns the token that is written as base64, null for one that is not whole, and undefined for what is none of ours */
export function wholeToken(base64: string): string | null | undefined {
  if (!base64.startsWith(bytesTag)) return isOfOurs(base64) ? null : undefined;
  const text = Buffer.from(base64, 'base64').toString();
  if (text.startsWith(tag)) return text;
  const [head, sum] = summed.exec(text) ?? [];
  if (head === undefined) return null;
  const rest = text.slice(head.length);
  return crc32(rest).toString(36) === sum ? tag + rest : null;
}

/** What stands in every token behind its tag and its checksum. */
const kindAndProtocol = new RegExp(`[.:][a-z]\\.(?:${textProtocols.join('|')})\\.`);
/** Letters of base64 in which that stands, some lost before it. */
const lettersOfHead = 64;

/** Whether a text that does not begin with our tag is a beginning of it, or a token whose tag was changed or has lost letters. */
function isOfOurs(base64: string): boolean {
  if (bytesTag.startsWith(base64)) return true;
  const head = base64.slice(0, lettersOfHead);
  // Where letters are lost, those behind them do not begin a byte any more.
  for (const shift of ['', 'A', 'AA', 'AAA'])
    if (kindAndProtocol.test(Buffer.from(shift + head, 'base64').toString('latin1'))) return true;
  return false;
}

/**
 * The token for what a client of a protocol carries in its opaque field: as it is when this gateway made it, tagged as
 * its own vendor's when an upstream of the client's protocol did, and null for nothing and for `noSignature`.
 */
export function carriedSignature(
  protocol: TextProtocolName,
  value: string,
  redacted: boolean,
): string | null {
  if (value === '' || value === noSignature) return null;
  return tokenIn(value) ?? tagSignature({ protocol, model: '', value, redacted });
}

/** @returns what a token holds, as it is or as base64, or null when it is not one of ours. */
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

/** Whether a token stands for reasoning that nobody can read beside it. */
export function isRedacted(token: string): boolean {
  return untagSignature(token)?.redacted ?? false;
}

/** @returns what a token holds when an upstream of this protocol made it, else null: then its reasoning is dropped. */
export function signatureFor(protocol: TextProtocolName, token: string | null): Signature | null {
  const signature = untagSignature(token);
  return signature?.protocol === protocol ? signature : null;
}
