import { cutId, tokensIn } from '../../conversation/carrying-id.js';
import type { AssistantPart, ReasoningPart } from '../../conversation/request.js';
import { signatureOfWords, signedBy, untagSignature } from '../../conversation/signature.js';
import { tagUnsigned } from '../../conversation/unsigned-reasoning.js';
import { type JsonObject, textOf } from '../../wire/json.js';
import { reasoningName, signatureBeside } from './answer/decode.js';

/*
 * The member of a call in which the vendor of generateContent carries signatures through chat
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */

/**
 * Returns the member of a call with its comma, or an empty string.
 * @param signature as `carryBeside` returns it
 */
export function extraContent(signature: string | undefined): string {
  if (signature === undefined) return '';
  return `,"extra_content":{"google":{"thought_signature":${JSON.stringify(signature)}}}`;
}

/** Returns the id of a call without the signatures that it may carry, or null for a value that is not an id. */
export function cutIdOf(id: unknown): string | null {
  return typeof id === 'string' ? cutId(id).id : null;
}

/** Returns the reasoning whose signatures a call carries. It belongs before the call. */
export function carriedReasoning(call: JsonObject): ReasoningPart[] {
  const { tokens } = cutId(textOf(call.id));
  const beside = signatureBeside(call);
  const carried = tokens.length > 0 || beside === null ? tokens : tokensIn(beside);
  return carried.map((signature) => ({ kind: 'reasoning', text: '', signature }));
}

/**
 * Adds the reasoning that a message has as text. What an upstream has signed or encrypted as a whole stood at the start of the
 * message, with its text if that can be determined. Other text is the reasoning of a chat upstream.
 * @param parts with the results of `carriedReasoning`, in their order
 */
export function withReasoning(message: JsonObject, parts: readonly AssistantPart[]): AssistantPart[] {
  const name = reasoningName(message);
  const text = name === null ? '' : (message[name] as string);
  const firstCall = parts.findIndex(({ kind }) => kind === 'toolCall');
  const isLeading = (part: AssistantPart, index: number) => index < firstCall && isOfTurn(part);
  const leading = parts.filter(isLeading);
  const rest = parts.filter((part, index) => !isLeading(part, index));
  const [only] = leading;
  if (leading.length === 1 && only !== undefined && !rest.some(isOfTurn)) {
    const isReadable = only.kind === 'reasoning' && !signatureOfWords(only.signature)?.redacted;
    return [isReadable ? { ...only, text } : only, ...rest];
  }
  if (leading.length > 0 || name === null) return [...leading, ...rest];
  return [{ kind: 'reasoning', text, signature: tagUnsigned(name, '') }, ...rest];
}

/** Tells whether a part is reasoning that its upstream has signed or encrypted apart from the calls and texts after it. */
function isOfTurn(part: AssistantPart): boolean {
  if (part.kind !== 'reasoning') return false;
  const signature = untagSignature(part.signature);
  return signature !== null && isSignedAlone[signedBy[signature.protocol]];
}

const isSignedAlone = { nothing: false, words: true, part: false, encryptedReasoning: true } as const;
