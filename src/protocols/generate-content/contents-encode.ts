import type { TargetManner } from '../../conversation/codec.js';
import { quoted } from '../../conversation/quoted.js';
import type {
  AssistantPart,
  MediaPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../conversation/request.js';
import { signatureFor } from '../../conversation/signature.js';
import { unsupportedAt } from '../../conversation/unsupported.js';
import { GatewayError } from '../../errors.js';
import { isObjectText } from './arguments.js';

/**
 * What stands for the signature of a call that the vendor's model did not make, or that a client carried without it.
 * Models with levels of reasoning refuse a call that has none
 * (https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs").
 */
const unsigned = 'skip_thought_signature_validator';

/** What is known while the turns are written in their order. */
interface Writing {
  readonly target: Pick<TargetManner, 'thinkingLevels'>;
  /** Names of the functions by the ids of their calls. */
  readonly names: Map<string, string>;
}

/**
 * Writes `contents`: the JSON text of the array. Turns of one role in a row are one content, since the protocol wants
 * user and model to alternate; instructions in the middle of a conversation are texts of the user.
 * @returns `[]` where the turns say nothing
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot say
 */
export function encodeContents(turns: readonly Turn[], target: Pick<TargetManner, 'thinkingLevels'>): string {
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

/** @param inside the media of the result stand in it */
function resultPart(result: ToolResultPart, names: ReadonlyMap<string, string>, inside: boolean): string {
  const { callId, content, isError, at } = result;
  const name = names.get(callId) ?? result.name;
  if (name === '') {
    throw new GatewayError(
      'invalid_value',
      `'${at}' is the result of the tool call '${callId}', which is not in the conversation before it.`,
      { param: at },
    );
  }
  const response = responseText(textOf(content), isError);
  let media = '';
  if (inside) for (const part of content) if (part.kind !== 'text') media = joined(media, spokenPart(part));
  const parts = media === '' ? '' : `,"parts":[${media}]`;
  const named = `"id":${JSON.stringify(callId)},"name":${JSON.stringify(name)}`;
  return `{"functionResponse":{${named},"response":${response}${parts}}}`;
}

/** The protocol wants an object: the text of one goes in as it is. */
function responseText(text: string, isError: boolean): string {
  if (isError) return `{"error":${JSON.stringify(text === '' ? 'The tool failed.' : text)}}`;
  return isObjectText(text) ? text : `{"result":${JSON.stringify(text)}}`;
}

function textOf(content: readonly (TextPart | MediaPart)[]): string {
  let text: string | null = null;
  for (const part of content)
    if (part.kind === 'text') text = text === null ? part.text : `${text}\n${part.text}`;
  return text ?? '';
}

function attachments({ content, callId }: ToolResultPart): string {
  let parts = '';
  for (const part of content) {
    if (part.kind === 'text') continue;
    if (parts === '') parts = textPart(`Attachments of the result of tool call ${callId}:`);
    parts = joined(parts, spokenPart(part));
  }
  return parts;
}

function spokenPart(part: TextPart | MediaPart): string {
  return part.kind === 'text' ? textPart(part.text) : `{${mediaMembers(part)}}`;
}

function textPart(text: string): string {
  return text === '' ? '' : `{"text":${quoted(text)}}`;
}

function mediaMembers({ source }: MediaPart): string {
  if (source.kind === 'data')
    return `"inlineData":{"mimeType":${JSON.stringify(source.mediaType)},"data":${quoted(source.data)}}`;
  const mediaType = source.mediaType === null ? '' : `,"mimeType":${JSON.stringify(source.mediaType)}`;
  return `"fileData":{"fileUri":${JSON.stringify(source.url)}${mediaType}}`;
}

function signed(members: string, signature: string): string {
  return `{${members},"thoughtSignature":${JSON.stringify(signature)}}`;
}

function joined(parts: string, more: string): string {
  return parts === '' || more === '' ? parts + more : `${parts},${more}`;
}
