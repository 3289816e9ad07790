import { decodeDataUrl, decodeMediaUrl, hasScheme } from '../../../conversation/media-source.js';
import type { MediaPart, RefusalPart, TextPart } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { requireText, wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';

/**
 * Reads the content of a user's message or of a tool's result.
 * @param at path of the content in the client's body
 * @throws {GatewayError} of status 400 for parts that are broken or that no other protocol knows
 */
export function decodeUserContent(content: unknown, at: string): (TextPart | MediaPart)[] {
  return decodeContent(content, at, userPart);
}

/**
 * Reads the content of an assistant's message. An empty text is none: it stands beside tool calls.
 * @throws {GatewayError} of status 400, as `decodeUserContent`
 */
export function decodeAssistantContent(content: unknown, at: string): (TextPart | RefusalPart)[] {
  return decodeContent(content, at, assistantPart).filter(({ text }) => text !== '');
}

/**
 * Reads the texts of a system or developer message, without empty ones.
 * @throws {GatewayError} of status 400 for a part that is no text
 */
export function decodeSystemContent(content: unknown, at: string): string[] {
  return decodeContent(content, at, textPart)
    .map(({ text }) => text)
    .filter((text) => text !== '');
}

function decodeContent<Part>(
  content: unknown,
  at: string,
  decodePart: (part: JsonObject, at: string) => Part | TextPart,
): (Part | TextPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (content === null || content === undefined) return [];
  if (!Array.isArray(content)) throw wrongValue(at, 'a string or an array of parts');
  return content.map((part: unknown, index) => {
    const partAt = `${at}[${index}]`;
    if (!isObject(part)) throw wrongValue(partAt, "an object with a 'type'");
    return decodePart(part, partAt);
  });
}

function userPart(part: JsonObject, at: string): TextPart | MediaPart {
  switch (part.type) {
    case 'image_url':
      return imagePart(part, at);
    case 'input_audio':
      return audioPart(part, at);
    case 'file':
      return filePart(part, at);
    default:
      return textPart(part, at);
  }
}

function assistantPart(part: JsonObject, at: string): TextPart | RefusalPart {
  if (part.type !== 'refusal') return textPart(part, at);
  return { kind: 'refusal', text: requireText(part, 'refusal', at) };
}

function textPart(part: JsonObject, at: string): TextPart {
  if (part.type !== 'text') throw untranslatable(at, `of type '${String(part.type)}'`);
  return { kind: 'text', text: requireText(part, 'text', at) };
}

function imagePart(part: JsonObject, at: string): MediaPart {
  const image = requireObject(part, 'image_url', at);
  const source = decodeMediaUrl(requireText(image, 'url', `${at}.image_url`), `${at}.image_url.url`);
  return { kind: 'image', source, detail: textOrNull(image.detail), name: null, at };
}

function audioPart(part: JsonObject, at: string): MediaPart {
  const audio = requireObject(part, 'input_audio', at);
  const data = requireText(audio, 'data', `${at}.input_audio`);
  const format = requireText(audio, 'format', `${at}.input_audio`).toLowerCase();
  const mediaType = format === 'mp3' ? 'audio/mpeg' : `audio/${format}`;
  return { kind: 'audio', source: { kind: 'data', mediaType, data }, detail: null, name: null, at };
}

function filePart(part: JsonObject, at: string): MediaPart {
  const file = requireObject(part, 'file', at);
  const name = textOrNull(file.filename);
  if (typeof file.file_data !== 'string' && typeof file.file_id === 'string')
    throw untranslatable(`${at}.file.file_id`);
  const data = requireText(file, 'file_data', `${at}.file`);
  // Some clients leave out the head of the data URL; then the name is all that tells the type.
  const source = hasScheme(data, 'data:')
    ? decodeDataUrl(data, `${at}.file.file_data`)
    : { kind: 'data' as const, mediaType: typeOfName(name), data };
  return { kind: 'document', source, detail: null, name, at };
}

function typeOfName(name: string | null): string {
  return name?.toLowerCase().endsWith('.pdf') ? 'application/pdf' : 'application/octet-stream';
}

function requireObject(part: JsonObject, key: string, at: string): JsonObject {
  const value = part[key];
  if (!isObject(value)) throw wrongValue(`${at}.${key}`, 'an object');
  return value;
}
