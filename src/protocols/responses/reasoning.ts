import type { TargetOptions } from '../../conversation/codec.js';
import {
  carriedSignature,
  isFor,
  signatureFor,
  tagSignature,
  tokenIn,
} from '../../conversation/signature.js';
import { type JsonObject, textOf } from '../../wire/json.js';

/*
 * An upstream of this protocol binds the reasoning that it encrypts to the id of the item, and refuses it under another
 * id. The token therefore holds both, as `<id>:<text>`.
 */

/** A reasoning item as its upstream made it. */
interface EncryptedReasoning {
  /** Empty if unknown: clients may omit the id, and must not invent one. */
  readonly id: string;
  readonly content: string;
}

/**
 * Returns the token that a client carries for a reasoning item.
 * @param model that made it, as `accountOf` has it; empty if unknown
 */
export function tagReasoning({ id, content }: EncryptedReasoning, model: string): string {
  const value = `${id.includes(':') ? '' : id}:${content}`;
  return tagSignature({ protocol: 'responses', model, value, redacted: true });
}

/**
 * Returns the token of a reasoning item that a client sent: the one that it carries, or a new one for what an upstream
 * of this protocol gave it. Null for an item that is not encrypted.
 */
export function carriedReasoning(item: JsonObject): string | null {
  const content = textOf(item.encrypted_content);
  const carried = carriedSignature('responses', content, true);
  return carried === null || tokenIn(content) !== null
    ? carried
    : tagReasoning({ id: textOf(item.id), content }, '');
}

/**
 * Returns the content of a token. A token without a text is not one of ours: under the id that it names, the upstream
 * would take the reasoning from its store, whosever it is.
 * @param target that gets it; null if it is not known to be another than the one that made it
 * @returns null if no upstream of this protocol, or another one, made it
 */
export function openReasoning(
  token: string | null,
  target: Pick<TargetOptions, 'model' | 'upstream'> | null,
): EncryptedReasoning | null {
  const signature = signatureFor('responses', token);
  if (signature === null || (target !== null && !isFor(signature, target))) return null;
  const { value } = signature;
  const colon = value.indexOf(':');
  const content = value.slice(colon + 1);
  return content.trim() === '' ? null : { id: colon > 0 ? value.slice(0, colon) : '', content };
}
