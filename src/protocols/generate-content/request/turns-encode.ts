import type { TargetOptions } from '../../../conversation/codec.js';
import type { AssistantPart, ToolCallPart, Turn } from '../../../conversation/request.js';
import { signatureFor } from '../../../conversation/signature.js';
import { GatewayError } from '../../../errors.js';
import { isObjectText } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { unsupportedAt } from '../../unsupported.js';
import { attachments, joined, mediaMembers, resultPart, spokenPart, textPart } from './content-encode.js';

/**
 * What stands for the signature of a call that the vendor's model did not make, or that a client carried without it.
 * Models with levels of reasoning refuse a call that has none
 * (https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs").
 */
const unsigned = 'skip_thought_signature_validator';

/** What is known while the turns are written in their order. */
interface Writing {
  readonly target: Pick<TargetOptions, 'thinkingLevels'>;
  /** Names of the functions by the ids of their calls. */
  readonly names: Map<string, string>;
}

/**
 * Writes `contents`: the JSON text of the array. Turns of one role in a row are one content, since the protocol wants
 * user and model to alternate; instructions in the middle of a conversation are texts of the user.
 * @returns `[]` where the turns say nothing
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot say
 */
export function encodeContents(
  turns: readonly Turn[],
  target: Pick<TargetOptions, 'thinkingLevels'>,
): string {
  const writing: Writing = { target, names: new Map() };
  let text = '';
  for (let index = 0; index < turns.length; ) {
    const isModel = turns[index]?.role === 'assistant';
    let end = index + 1;
    while (end < turns.length && (turns[end]?.role === 'assistant') === isModel) end++;
    const row = turns.slice(index, end);
    const parts = isModel ? modelParts(row, writing) : userParts(row, writing);
    if (parts !== '')
      text += `${text === '' ? '' : ','}{"role":"${isModel ? 'model' : 'user'}","parts":[${parts}]}`;
    index = end;
  }
  return `[${text}]`;
}

/** Results come first: they must follow their calls at once. The media of a result come after them all. */
function userParts(turns: readonly Turn[], writing: Writing): string {
  let results = '';
  let media = '';
  let spoken = '';
  for (const turn of turns) {
    if (turn.role === 'system') {
      spoken = joined(spoken, textPart(turn.text));
    } else if (turn.role === 'user') {
      for (const part of turn.parts) {
        if (part.kind !== 'toolResult') {
          spoken = joined(spoken, spokenPart(part));
          continue;
        }
        const inside = writing.target.thinkingLevels;
        results = joined(results, resultPart(part, writing.names, inside));
        if (!inside) media = joined(media, attachments(part));
      }
    }
  }
  return joined(joined(results, media), spoken);
}

function modelParts(turns: readonly Turn[], { target, names }: Writing): string {
  let parts = '';
  // Stands on the part after the reasoning.
  let signature: string | null = null;
  let calls = 0;
  for (const turn of turns) {
    if (turn.role !== 'assistant') continue;
    for (const part of turn.parts) {
      if (part.kind === 'reasoning') {
        const own = signatureFor('generateContent', part.signature);
        if (own === null) continue;
        if (signature !== null) parts = joined(parts, signed('"text":""', signature));
        if (part.text !== '') parts = joined(parts, `{"text":${quoted(part.text)},"thought":true}`);
        signature = own.value;
        continue;
      }
      if (part.kind === 'toolCall') {
        names.set(part.id, part.name);
        if (calls++ === 0 && target.thinkingLevels) signature ??= unsigned;
      }
      const members = modelMembers(part);
      if (members === '') continue;
      parts = joined(parts, signature === null ? `{${members}}` : signed(members, signature));
      signature = null;
    }
  }
  return signature === null ? parts : joined(parts, signed('"text":""', signature));
}

/** The members of a part, or nothing for an empty text. */
function modelMembers(part: Exclude<AssistantPart, { readonly kind: 'reasoning' }>): string {
  if (part.kind === 'toolCall') return callMembers(part);
  if (part.kind === 'text' || part.kind === 'refusal')
    return part.text === '' ? '' : `"text":${quoted(part.text)}`;
  return mediaMembers(part);
}

function callMembers({ id, name, input, custom, at }: ToolCallPart): string {
  if (custom) throw unsupportedAt(at, 'generateContent', '(a call of a custom tool)');
  const args = input.trim() === '' ? '{}' : input;
  if (!isObjectText(args)) {
    throw new GatewayError(
      'invalid_value',
      `'${at}': the arguments of the call of '${name}' must be the JSON text of an object.`,
      { param: at },
    );
  }
  // The text goes in as it is: a parse would round its large numbers.
  return `"functionCall":{"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"args":${args}}`;
}

function signed(members: string, signature: string): string {
  return `{${members},"thoughtSignature":${JSON.stringify(signature)}}`;
}
