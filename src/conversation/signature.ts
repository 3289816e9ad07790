import { type TextProtocolName, textProtocols } from './request.js';

/*
 * Signatures of reasoning (and reasoning that its vendor encrypted) mean something to their vendor alone. A client of
 * another protocol carries them in its own opaque field, as a token that says where they belong:
 * `gw1.<s or r>.<protocol>.<model in base64url>.<the vendor's own text>`.
 */

const tag = 'gw1.';
/** What a body must hold for a token to be in it. */
export const signatureMark = Buffer.from(`"${tag}`);

export interface Signature {
  /** Protocol of the upstream that made it. */
  readonly protocol: TextProtocolName;
  /** Model that made it, by its name at the upstream. */
  readonly model: string;
  /** The vendor's own text. */
  readonly value: string;
  /** The value is reasoning in encrypted form, not the signature of a readable one. */
  readonly redacted: boolean;
}

/** Makes the token that a client carries. */
export function tagSignature({ protocol, model, value, redacted }: Signature): string {
  const name = Buffer.from(model).toString('base64url');
  return `${tag}${redacted ? 'r' : 's'}.${protocol}.${name}.${value}`;
}

/**
 * The token for what a client of a protocol carries in its opaque field: as it is when this gateway made it, tagged as
 * its own vendor's when an upstream of the client's protocol did, and null for nothing.
 */
export function carriedSignature(
  protocol: TextProtocolName,
  value: string,
  redacted: boolean,
): string | null {
  if (value === '') return null;
  return value.startsWith(tag) ? value : tagSignature({ protocol, model: '', value, redacted });
}

/** @returns what a token holds, or null when it is not one of ours. */
export function untagSignature(token: string | null): Signature | null {
  if (token === null || !token.startsWith(tag)) return null;
  const kindEnd = token.indexOf('.', tag.length);
  const protocolEnd = token.indexOf('.', kindEnd + 1);
  const modelEnd = token.indexOf('.', protocolEnd + 1);
  if (kindEnd === -1 || protocolEnd === -1 || modelEnd === -1) return null;
  const protocol = token.slice(kindEnd + 1, protocolEnd);
  if (!isProtocol(protocol)) return null;
  return {
    protocol,
    model: Buffer.from(token.slice(protocolEnd + 1, modelEnd), 'base64url').toString(),
    value: token.slice(modelEnd + 1),
    redacted: token.slice(tag.length, kindEnd) === 'r',
  };
}

/** @returns what a token holds when an upstream of this protocol made it, else null: then its reasoning is dropped. */
export function signatureFor(protocol: TextProtocolName, token: string | null): Signature | null {
  const signature = untagSignature(token);
  return signature?.protocol === protocol ? signature : null;
}

function isProtocol(name: string): name is TextProtocolName {
  return (textProtocols as readonly string[]).includes(name);
}
