import type { ReasoningPart } from './request.js';
import { signatureFor, tagSignature } from './signature.js';

/*
 * Reasoning of chat upstreams is plain text without a signature. Some upstreams refuse the next turn of a tool loop
 * without it (https://api-docs.deepseek.com/guides/thinking_mode). Clients of other protocols carry a token of
 * `signature.ts` whose value is the name of the member with the reasoning. If the client does not see or keep the text,
 * the value contains it too: `<name>` or `<name>:<base64url>`. A client that forges such a token gains no more than a
 * chat client, which writes the same member itself.
 */

/** The names that upstreams use for reasoning. */
export const reasoningNames = ['reasoning_content', 'reasoning'] as const;
export type ReasoningName = (typeof reasoningNames)[number];

/**
 * Names in tokens for what only the upstream can read, and may refuse to miss: the signature that Gemini's chat
 * interface has beside a call, and OpenRouter's list of reasoning with signatures and encrypted entries
 * (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks).
 */
type OpaqueName = 'thought_signature' | 'reasoning_details';

/** Maximum number of characters of text in the tokens of one answer: clients send them with every later turn. */
export const mostCarried = 512 * 1024;

/**
 * @param model the model that made the reasoning, by its name at the upstream; empty if a client wrote the member
 * itself
 */
export function tagUnsigned(name: ReasoningName, model: string): string {
  return tagSignature({ protocol: 'chat', model, value: name, redacted: false });
}

/** Makes the token for what only the upstream can read. It is carried before the call to which it belongs. */
export function tagOpaque(name: OpaqueName, text: string, model: string): string {
  return withText(tagSignature({ protocol: 'chat', model, value: name, redacted: false }), text);
}

/** Adds the text to a token. Other tokens are returned unchanged. */
export function withText(token: string, text: string): string {
  const signature = signatureFor('chat', token);
  if (signature === null || signature.redacted) return token;
  const value = `${signature.value}:${Buffer.from(text).toString('base64url')}`;
  return tagSignature({ ...signature, value, redacted: true });
}

interface UnsignedReasoning {
  readonly name: ReasoningName;
  readonly text: string;
}

/**
 * Returns what a chat upstream receives of a reasoning part.
 * @param model the upstream's model: others may refuse the member
 * @returns null for reasoning of another model or protocol
 */
export function unsignedReasoning(part: ReasoningPart, model: string): UnsignedReasoning | null {
  const carried = carriedFor(part, model);
  const name = reasoningNames.find((each) => each === carried?.name);
  return carried === null || name === undefined ? null : { name, text: carried.text };
}

/** Likewise, what `tagOpaque` has put into a token under this name. */
export function opaqueIn(name: OpaqueName, part: ReasoningPart, model: string): string | null {
  const carried = carriedFor(part, model);
  return carried?.name === name ? carried.text : null;
}

/** Returns whether a token is that of OpenRouter's list. */
export function isOfDetails(token: string): boolean {
  const signature = signatureFor('chat', token);
  return signature?.redacted === true && signature.value.startsWith('reasoning_details:');
}

function carriedFor(part: ReasoningPart, model: string): { name: string; text: string } | null {
  const signature = signatureFor('chat', part.signature);
  if (signature === null || (signature.model !== '' && bareName(signature.model) !== bareName(model)))
    return null;
  const { value, redacted } = signature;
  const colon = redacted ? value.indexOf(':') : value.length;
  const text = redacted ? Buffer.from(value.slice(colon + 1), 'base64url').toString() : part.text;
  return text === '' ? null : { name: value.slice(0, colon), text };
}

/** Vendors that resell a model put a prefix of their own before its name: `deepseek/deepseek-chat`. */
function bareName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1).toLowerCase();
}
