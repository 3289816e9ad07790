import { decodeDataUrl, decodeMediaUrl, hasScheme } from '../../../conversation/media-source.js';
import type { AssistantPart, MediaPart, MediaSource, TextPart } from '../../../conversation/request.js';
import type { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { untranslatable } from '../../unsupported.js';
import { invalid, missing, ofType, wrongType } from '../refusals.js';

/** A URL that was taken for base64 has its colon among so many first characters. */
const schemeCharacters = 16;

/**
 * Decodes the content of a user's message, or the output of a tool.
 * @param content a string or an array of input parts
 * @param at its path in the client's body
 * @throws {GatewayError} naming the part that cannot be taken
 */
export function decodeContent(content: unknown, at: string): (TextPart | MediaPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return partsOf(content, at).map((part, index) => decodePart(part, `${at}[${index}]`));
}

/**
 * Decodes the content of a message of the assistant's.
 * @throws {GatewayError} naming the part that is neither a text nor a refusal
 */
export function decodeAssistantContent(content: unknown, at: string): AssistantPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return partsOf(content, at).map((part, index) => {
    if (isText(part)) return { kind: 'text', text: textOrNull(part.text) ?? '' };
    if (part.type === 'refusal') return { kind: 'refusal', text: textOrNull(part.refusal) ?? '' };
    throw untranslatable(`${at}[${index}]`, ofType(part.type));
  });
}

/**
 * The texts of a message that may hold nothing else.
 * @throws {GatewayError} naming the first part that is no text
 */
export function textOfContent(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  const texts = partsOf(content, at).map((part, index) => {
    if (isText(part) && typeof part.text === 'string') return part.text;
    throw untranslatable(`${at}[${index}]`, ofType(part.type));
  });
  return texts.join('\n');
}

/** The parts of a content that is not a string. @throws {GatewayError} for what is no array of objects */
function partsOf(content: unknown, at: string): readonly JsonObject[] {
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array');
  content.forEach((part, index) => {
    if (!isObject(part)) throw wrongType(`${at}[${index}]`, 'an object');
  });
  return content;
}

function isText({ type }: JsonObject): boolean {
  return type === 'input_text' || type === 'output_text' || type === 'text';
}

function decodePart(part: JsonObject, at: string): TextPart | MediaPart {
  if (isText(part)) return { kind: 'text', text: textOrNull(part.text) ?? '' };
  switch (part.type) {
    case 'input_image':
      return {
        kind: 'image',
        source: imageSource(part, at),
        detail: textOrNull(part.detail),
        name: null,
        at,
      };
    case 'input_file': {
      const source = fileSource(part, at);
      // A file may be of any type here; elsewhere an image is another thing than a document.
      if (source.kind === 'data' && source.mediaType.startsWith('image/'))
        return { kind: 'image', source, detail: null, name: null, at };
      return { kind: 'document', source, detail: null, name: textOrNull(part.filename), at };
    }
    default:
      throw untranslatable(at, ofType(part.type));
  }
}

function imageSource(part: JsonObject, at: string): MediaSource {
  const url = textOrNull(part.image_url) ?? '';
  if (url === '') throw noSource(part, at, 'image_url');
  return decodeMediaUrl(url, `${at}.image_url`);
}

function fileSource(part: JsonObject, at: string): MediaSource {
  const data = textOrNull(part.file_data) ?? '';
  if (data !== '') return bytesOfFile(data, textOrNull(part.filename), `${at}.file_data`);
  const url = textOrNull(part.file_url) ?? '';
  if (url === '') throw noSource(part, at, 'file_data');
  return decodeMediaUrl(url, `${at}.file_url`);
}

/** The bytes of a file come as a data URL or as base64 alone. */
function bytesOfFile(data: string, name: string | null, at: string): MediaSource {
  if (hasScheme(data, 'data:')) return decodeDataUrl(data, at);
  if (data.slice(0, schemeCharacters).includes(':')) throw invalid(at, 'expected base64 or a data URL');
  const mediaType = name?.toLowerCase().endsWith('.pdf') ? 'application/pdf' : 'application/octet-stream';
  return { kind: 'data', mediaType, data };
}

function noSource(part: JsonObject, at: string, member: string): GatewayError {
  if (typeof part.file_id === 'string' && part.file_id !== '') return untranslatable(`${at}.file_id`);
  return missing(`${at}.${member}`, 'the bytes or the URL of what is sent');
}
