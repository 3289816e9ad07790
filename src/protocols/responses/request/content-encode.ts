import type { MediaPart, TextPart } from '../../../conversation/request.js';
import { quoted } from '../../../wire/quoted.js';
import { unsupportedAt } from '../../unsupported.js';

/** Writes the output of a tool: one text as a string, all else as parts. */
export function encodeOutput(content: readonly (TextPart | MediaPart)[], isError: boolean): string {
  const [first, second] = content;
  if (content.length === 0) return '""';
  if (content.length === 1 && first?.kind === 'text') return quoted(first.text);
  if (isError && content.length === 2 && first?.kind === 'text' && second?.kind === 'text')
    return JSON.stringify(`${first.text} ${second.text}`);
  return `[${content.map(contentPart).join(',')}]`;
}

/**
 * Writes a part of a user's message or of an output.
 * @throws {GatewayError} of status 400 for media that the protocol has no part for
 */
export function contentPart(part: TextPart | MediaPart): string {
  switch (part.kind) {
    case 'text':
      return textPart('input_text', part.text);
    case 'image':
      return `{"type":"input_image","image_url":${urlOf(part)},"detail":${JSON.stringify(part.detail ?? 'auto')}}`;
    case 'document':
      return filePart(part);
    default:
      throw unsupportedAt(part.at, 'responses', `(${part.kind})`);
  }
}

function filePart(part: MediaPart): string {
  const { source, name } = part;
  if (source.kind === 'url') {
    const filename = name === null ? '' : `,"filename":${JSON.stringify(name)}`;
    return `{"type":"input_file","file_url":${urlOf(part)}${filename}}`;
  }
  // Bytes without a name are refused.
  const filename = name ?? (source.mediaType === 'application/pdf' ? 'document.pdf' : 'document');
  return `{"type":"input_file","filename":${JSON.stringify(filename)},"file_data":${urlOf(part)}}`;
}

/** JSON text of the URL, or of the bytes as one. */
function urlOf({ source }: MediaPart): string {
  return JSON.stringify(
    source.kind === 'url' ? source.url : `data:${source.mediaType};base64,${source.data}`,
  );
}

/** Writes a text. */
export function textPart(type: string, text: string): string {
  return `{"type":"${type}","text":${quoted(text)}}`;
}
