import type { MediaPart, TextPart, ToolResultPart } from '../../../conversation/request.js';
import { GatewayError } from '../../../errors.js';
import { isObjectText } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';

/**
 * Writes the part of a tool's result.
 * @param names of the functions by the ids of their calls
 * @param inside the media of the result stand in it
 * @throws {GatewayError} of status 400 for the result of a call that is nowhere before it
 */
export function resultPart(
  result: ToolResultPart,
  names: ReadonlyMap<string, string>,
  inside: boolean,
): string {
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

/** Writes the media of a result as parts of their own, with a text before them that says whose they are. */
export function attachments({ content, callId }: ToolResultPart): string {
  let parts = '';
  for (const part of content) {
    if (part.kind === 'text') continue;
    if (parts === '') parts = textPart(`Attachments of the result of tool call ${callId}:`);
    parts = joined(parts, spokenPart(part));
  }
  return parts;
}

/** Writes a part of the user's; nothing for an empty text. */
export function spokenPart(part: TextPart | MediaPart): string {
  return part.kind === 'text' ? textPart(part.text) : `{${mediaMembers(part)}}`;
}

/** Writes a text; nothing for an empty one. */
export function textPart(text: string): string {
  return text === '' ? '' : `{"text":${quoted(text)}}`;
}

/** The members of a part that is a medium. */
export function mediaMembers({ source }: MediaPart): string {
  if (source.kind === 'data')
    return `"inlineData":{"mimeType":${JSON.stringify(source.mediaType)},"data":${quoted(source.data)}}`;
  const mediaType = source.mediaType === null ? '' : `,"mimeType":${JSON.stringify(source.mediaType)}`;
  return `"fileData":{"fileUri":${JSON.stringify(source.url)}${mediaType}}`;
}

/** Parts, and more behind them. */
export function joined(parts: string, more: string): string {
  return parts === '' || more === '' ? parts + more : `${parts},${more}`;
}
