import { flagOrNull, type JsonObject, numberOrNull, textOrNull } from '../../wire/json.js';
import type { ImageFormat, ImageRequest, ImageSize } from './request.js';

/** The part of a request that is read from members of their own. */
type ImageSettings = Pick<
  ImageRequest,
  | 'negativePrompt'
  | 'promptExtend'
  | 'watermark'
  | 'size'
  | 'count'
  | 'responseFormat'
  | 'stream'
  | 'extras'
  | 'parameters'
>;

const sizeForm = /^(\d{1,6})[*x](\d{1,6})$/;

/** Members that have a field of their own in a request. */
const inParameters = new Set(['negative_prompt', 'prompt_extend', 'watermark', 'size', 'n']);
const besidePrompt = new Set([
  ...inParameters,
  'response_format',
  'stream',
  'model',
  'prompt',
  'input',
  'images',
  'image',
  'mask',
]);
const besideInput = new Set([...besidePrompt, 'parameters']);

/**
 * Reads the settings of a validated body. `parameters` takes precedence over the top level.
 * @param body JSON body, or the text fields of a form
 * @param parameters the body's own, or null for a form that has none
 */
export function decodeSettings(body: JsonObject, parameters: JsonObject | null): ImageSettings {
  const find = (key: string): unknown =>
    (parameters === null || !inParameters.has(key) ? null : ownOf(parameters, key)) ?? ownOf(body, key);
  return {
    negativePrompt: textOrNull(find('negative_prompt')) || null,
    promptExtend: flagOrNull(find('prompt_extend')),
    watermark: flagOrNull(find('watermark')),
    size: sizeOf(textOrNull(find('size')) || null),
    count: numberOrNull(find('n')),
    responseFormat: formatOrNull(find('response_format')),
    stream: find('stream') === true,
    extras: without(body, parameters === null ? besidePrompt : besideInput),
    parameters: parameters === null ? {} : without(parameters, inParameters),
  };
}

/** Writes a size such as `1024x1024`, or with another sign. A word such as `2K` is returned unchanged. */
export function writeSize(size: ImageSize | string, sign: 'x' | '*'): string {
  return typeof size === 'string' ? size : `${size.width}${sign}${size.height}`;
}

/** Reads the requested format of images. Null if it is absent or unknown. */
export function formatOrNull(value: unknown): ImageFormat | null {
  return value === 'url' || value === 'b64_json' ? value : null;
}

/** Words for a size, other than width and height, are judged by the upstream. */
function sizeOf(text: string | null): ImageSize | string | null {
  const [, width, height] = (text === null ? null : sizeForm.exec(text)) ?? [];
  const size = { width: Number(width), height: Number(height) };
  return size.width > 0 && size.height > 0 ? size : text;
}

/** Returns a member, or null. Members of an object's prototype do not count. */
function ownOf(holder: JsonObject, key: string): unknown {
  return Object.hasOwn(holder, key) ? (holder[key] ?? null) : null;
}

function without(holder: JsonObject, keys: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(holder).filter(([key]) => !keys.has(key)));
}
