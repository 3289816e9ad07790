import type { JsonObject } from '../../wire/json.js';
import { wrongValue } from '../../wire/reading.js';
import type { ImageFormat, ImageRequest, ImageSize } from './request.js';
import { mostCount } from './schema.js';

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

interface Found {
  readonly value: unknown;
  /** Path in the client's body. */
  readonly at: string;
}

/**
 * Reads the settings of a body. What `parameters` says counts before what stands at the top level.
 * @param body JSON body, or the text fields of a form
 * @param parameters the body's own, or null for a form that has none
 * @throws {GatewayError} of status 400, naming the member
 */
export function decodeSettings(body: JsonObject, parameters: JsonObject | null): ImageSettings {
  const find = (key: string): Found => {
    const inner = parameters !== null && inParameters.has(key) ? ownOf(parameters, key) : null;
    return inner === null ? { value: ownOf(body, key), at: key } : { value: inner, at: `parameters.${key}` };
  };
  return {
    negativePrompt: textOf(find('negative_prompt')),
    promptExtend: flagOf(find('prompt_extend')),
    watermark: flagOf(find('watermark')),
    size: sizeOf(find('size')),
    count: countOf(find('n')),
    responseFormat: formatOf(find('response_format')),
    stream: flagOf(find('stream')) ?? false,
    extras: without(body, parameters === null ? besidePrompt : besideInput),
    parameters: parameters === null ? {} : without(parameters, inParameters),
  };
}

/** `1024x1024`, or with another sign between the numbers; a word such as `2K` stays as it is. */
export function writeSize(size: ImageSize | string, sign: 'x' | '*'): string {
  return typeof size === 'string' ? size : `${size.width}${sign}${size.height}`;
}

function textOf({ value, at }: Found): string | null {
  if (value === null || value === '') return null;
  if (typeof value !== 'string') throw wrongValue(at, 'a string');
  return value;
}

function flagOf({ value, at }: Found): boolean | null {
  if (value === null) return null;
  if (typeof value !== 'boolean') throw wrongValue(at, 'a boolean');
  return value;
}

function countOf({ value, at }: Found): number | null {
  if (value === null) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > mostCount)
    throw wrongValue(at, `an integer between 1 and ${mostCount}`);
  return value;
}

function formatOf({ value, at }: Found): ImageFormat | null {
  if (value === null || value === 'url' || value === 'b64_json') return value;
  throw wrongValue(at, '"url" or "b64_json"');
}

/** Which words a model knows beside a width and a height is for its upstream to say. */
function sizeOf(found: Found): ImageSize | string | null {
  const text = textOf(found);
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
