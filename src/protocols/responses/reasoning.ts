import { carriedSignature, signatureFor, tagSignature, tokenIn } from '../../conversation/signature.js';
import { type JsonObject, textOf } from '../../wire/json.js';

/*
 * Reasoning that an upstream of this protocol encrypted belongs to the item's id: the upstream refuses it under
 * another. So the id travels in the token beside the encrypted text, as `<id>:<text>`.
 */

/** A reasoning item as its upstream made it. */
interface EncryptedReasoning {
  /** Empty where it is not known: clients may leave it out, and must not invent one. */
  readonly id: string;
  readonly content: string;
}

/**
 * Makes the token that a client carries for a reasoning item.
 * @param model its maker, by its name at the upstream
 */
export function tagReasoning({ id, content }: EncryptedReasoning, model: string): string {
  const value = `${id.includes(':') ? '' : id}:${content}`;
  return tagSignature({ protocol: 'responses', model, value, redacted: true });
}

/**
 * The token for a reasoning item that a client sent: the one that it carries, or one made of what an upstream of this
 * protocol gave it. Null for an item that is not encrypted.
 */
export function carriedReasoning(item: JsonObject): string | null {
  const content = textOf(item.encrypted_content);
  const carried = carriedSignature('responses', content, true);
  return carried === null || tokenIn(content) !== null
    ? carried
    : tagReasoning({ id: textOf(item.id), content }, '');
}

/** What a token holds, or null when it was not made by an upstream of this protocol. */
export function openReasoning(token: string | null): EncryptedReasoning | null {
  const value = signatureFor('responses', token)?.value;
  if (value === undefined) return null;
  const colon = value.indexOf(':');
  return { id: colon > 0 ? value.slice(0, colon) : '', content: value.slice(colon + 1) };
}
