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

/** Members that have a place of their own in a request. */
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
 * Reads the settings of a body that has passed its check. What `parameters` says counts before what stands at the top level.
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

/** `1024x1024`, or with another sign between the numbers; a word such as `2K` stays as it is. */
export function writeSize(size: ImageSize | string, sign: 'x' | '*'): string {
  return typeof size === 'string' ? size : `${size.width}${sign}${size.height}`;
}

/** The form in which images are asked for; null where it is none, or not said. */
export function formatOrNull(value: unknown): ImageFormat | null {
  return value === 'url' || value === 'b64_json' ? value : null;
}

/** Which words a model knows beside a width and a height is for its upstream to say. */
function sizeOf(text: string | null): ImageSize | string | null {
  const [, width, height] = (text === null ? null : sizeForm.exec(text)) ?? [];
  const size = { width: Number(width), height: Number(height) };
  return size.width > 0 && size.height > 0 ? size : text;
}

/** A member, or null. Keys of an object's prototype are not members of a body. */
function ownOf(holder: JsonObject, key: string): unknown {
  return Object.hasOwn(holder, key) ? (holder[key] ?? null) : null;
}

function without(holder: JsonObject, keys: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(holder).filter(([key]) => !keys.has(key)));
}
