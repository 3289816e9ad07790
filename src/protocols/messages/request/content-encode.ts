import type { MediaPart, TextPart, ToolResultPart } from '../../../conversation/request.js';
import { quoted } from '../../../wire/quoted.js';
import { unsupportedAt } from '../../unsupported.js';
import { legalCallId } from '../call-ids.js';

/** Images that the protocol takes, by their media types. */
const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** What stands for a failed result that says nothing: the protocol wants a content beside `is_error`. */
const bareError = 'The tool failed.';

/** True for a text that the protocol refuses as a block: one without anything but white space. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** The JSON text of a text block. */
export function encodeText(text: string): string {
  return `{"type":"text","text":${quoted(text)}}`;
}

/**
 * Writes the JSON text of a block of a user's message.
 * @throws {GatewayError} of status 400 for media that the protocol has no block for
 */
export function encodeBlock(part: TextPart | MediaPart): string {
  if (part.kind === 'text') return encodeText(part.text);
  if (part.kind === 'image') return encodeImage(part);
  if (part.kind === 'document') return encodeDocument(part);
  throw unsupportedAt(part.at, 'messages', `(${part.kind})`);
}

/**
 * Writes the JSON text of a `tool_result` block. A single text is its content as a string, anything else an array.
 * @throws {GatewayError} of status 400, as `encodeBlock`
 */
export function encodeResult({ callId, content, isError }: ToolResultPart): string {
  let text = `{"type":"tool_result","tool_use_id":${JSON.stringify(legalCallId(callId))}`;
  const said = content.filter((part) => part.kind !== 'text' || !isBlank(part.text));
  const [first] = said;
  if (said.length === 1 && first?.kind === 'text') text += `,"content":${quoted(first.text)}`;
  else if (said.length > 0) text += `,"content":[${said.map(encodeBlock).join(',')}]`;
  else if (isError) text += `,"content":${JSON.stringify(bareError)}`;
  return isError ? `${text},"is_error":true}` : `${text}}`;
}

function encodeImage({ source, at }: MediaPart): string {
  if (source.kind === 'url') return `{"type":"image","source":${urlSource(source.url)}}`;
  if (!imageTypes.includes(source.mediaType))
    throw unsupportedAt(at, 'messages', `of type '${source.mediaType}'`);
  return `{"type":"image","source":${dataSource(source.mediaType, source.data)}}`;
}

function encodeDocument({ source, name, at }: MediaPart): string {
  const title = name === null || name === '' ? '' : `,"title":${JSON.stringify(name)}`;
  if (source.kind === 'url') return `{"type":"document","source":${urlSource(source.url)}${title}}`;
  const { mediaType, data } = source;
  if (mediaType === 'application/pdf')
    return `{"type":"document","source":${dataSource(mediaType, data)}${title}}`;
  if (!mediaType.startsWith('text/') && mediaType !== 'application/json')
    throw unsupportedAt(at, 'messages', `of type '${mediaType}'`);
  const text = Buffer.from(data, 'base64').toString('utf8');
  return `{"type":"document","source":{"type":"text","media_type":"text/plain","data":${JSON.stringify(text)}}${title}}`;
}

function dataSource(mediaType: string, data: string): string {
  return `{"type":"base64","media_type":"${mediaType}","data":${quoted(data)}}`;
}

function urlSource(url: string): string {
  return `{"type":"url","url":${JSON.stringify(url)}}`;
}
