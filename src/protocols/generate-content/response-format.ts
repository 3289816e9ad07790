import { isObject, type JsonObject, textOf } from '../../wire/json.js';
import { keyOf, memberOf, repeated } from './spelling.js';

/*
 * `generationConfig.responseFormat`, the newer member for what the other members of the config say of the answer's form
 * (https://ai.google.dev/api/generate-content#ResponseFormat). The SDK's type is a list, and clients without an SDK send
 * a single object. Values are words of an enumeration, or what the older members have: `ASPECT_RATIO_SIXTEEN_BY_NINE`
 * and `16:9`.
 */

export type OutputKind = 'text' | 'image' | 'audio' | 'video';

/** What a request says of one kind of output, with its place in the client's body. */
export interface KindFormat {
  readonly value: unknown;
  readonly at: string;
}

/**
 * Returns what `responseFormat` says of a kind of output, or null.
 * @param config under the client's names
 * @param configAt path of it in the client's body
 */
export function responseFormatOf(config: JsonObject, kind: OutputKind, configAt: string): KindFormat | null {
  const listAt = `${configAt}.${keyOf(config, 'responseFormat')}`;
  for (const [format, at] of repeated(memberOf(config, 'responseFormat'), listAt)) {
    const value = format[kind] ?? null;
    if (value !== null) return { value, at: `${at}.${kind}` };
  }
  return null;
}

/** Returns the config without what `responseFormat` says of images. */
export function withoutImageFormat(config: JsonObject): JsonObject {
  const key = keyOf(config, 'responseFormat');
  const formats = config[key];
  const withoutImage = (format: unknown) => (isObject(format) ? { ...format, image: undefined } : format);
  return { ...config, [key]: Array.isArray(formats) ? formats.map(withoutImage) : withoutImage(formats) };
}

const mediaTypes: ReadonlyMap<string, string> = new Map([
  ['MIME_TYPE_UNSPECIFIED', ''],
  ['APPLICATION_JSON', 'application/json'],
  ['TEXT_PLAIN', 'text/plain'],
]);

/** Returns the media type of a text; any other word unchanged. */
export function mediaTypeOfFormat(format: JsonObject): string {
  const word = textOf(memberOf(format, 'mimeType'));
  return mediaTypes.get(word) ?? word;
}

const numbers: ReadonlyMap<string, string> = new Map([
  ['ONE', '1'],
  ['TWO', '2'],
  ['THREE', '3'],
  ['FOUR', '4'],
  ['FIVE', '5'],
  ['EIGHT', '8'],
  ['NINE', '9'],
  ['SIXTEEN', '16'],
  ['TWENTY_ONE', '21'],
]);
const ratioStart = 'ASPECT_RATIO_';
const unspecified = 'UNSPECIFIED';

/** Returns a ratio as `imageConfig` has it: `16:9` for `ASPECT_RATIO_SIXTEEN_BY_NINE`. Other texts are unchanged. */
export function plainRatio(text: string): string {
  if (!text.startsWith(ratioStart)) return text;
  const word = text.slice(ratioStart.length);
  if (word === unspecified) return '';
  const [across = '', down = ''] = word.split('_BY_');
  return `${numbers.get(across) ?? across}:${numbers.get(down) ?? down}`;
}

const sizes: ReadonlyMap<string, string> = new Map([
  ['IMAGE_SIZE_UNSPECIFIED', ''],
  ['IMAGE_SIZE_FIVE_TWELVE', '512'],
  ['IMAGE_SIZE_ONE_K', '1K'],
  ['IMAGE_SIZE_TWO_K', '2K'],
  ['IMAGE_SIZE_FOUR_K', '4K'],
]);

/** Returns a size as `imageConfig` has it: `2K` for `IMAGE_SIZE_TWO_K`. Other texts are unchanged. */
export function plainSize(text: string): string {
  return sizes.get(text) ?? text;
}
