import { isImageUrl } from './image-reference.js';
import type { JsonObject } from './json.js';
import { invalid } from './json-request.js';
import { OpenAiError } from './openai-error.js';

/** The value of a parameter that is a text, or null without one. */
export function textOrNull(body: JsonObject, name: string): string | null {
  const value = body[name] ?? null;
  if (value !== null && typeof value !== 'string') {
    throw invalid(name, 'a string');
  }
  return value;
}

/** The value of a parameter that must be a text of one to `most` characters. */
export function requiredText(body: JsonObject, name: string, most: number): string {
  const text = textOrNull(body, name);
  if (text === null) {
    throw new OpenAiError(400, `Missing required parameter: '${name}'.`, name, 'missing_required_parameter');
  }
  if (text === '') {
    throw new OpenAiError(
      400,
      `Invalid '${name}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
      name,
      'empty_string',
    );
  }
  if (text.length > most) {
    throw new OpenAiError(
      400,
      `Invalid '${name}': string too long. Expected a string with maximum length ${most}, but got a string with length ${text.length} instead.`,
      name,
      'string_above_max_length',
    );
  }
  return text;
}

/** The value of a parameter that is one of some words; the first of them without one. */
export function oneOf<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const value = body[name] ?? words[0];
  const found = words.find((word) => word === value);
  if (found === undefined) {
    throw new OpenAiError(
      400,
      `Invalid value: ${JSON.stringify(value)}. Supported values are: ${words.map((word) => `'${word}'`).join(', ')}.`,
      name,
      'invalid_value',
    );
  }
  return found;
}

/** The value of a parameter that is a number within bounds, or null without one. */
export function numberWithin(body: JsonObject, name: string, least: number, most: number): number | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  if (typeof value !== 'number' || !(value >= least && value <= most)) {
    throw invalid(name, `a number from ${least} to ${most}`);
  }
  return value;
}

/** The value of a parameter that is true or false; false without one. */
export function flag(body: JsonObject, name: string): boolean {
  const value = body[name] ?? false;
  if (typeof value !== 'boolean') {
    throw invalid(name, 'a boolean');
  }
  return value;
}

/** Refuses a body with a member that the route has no name for. */
export function refuseUnknown(body: JsonObject, names: ReadonlySet<string>): void {
  const unknown = Object.keys(body).find((name) => !names.has(name));
  if (unknown !== undefined) {
    throw new OpenAiError(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  }
}

/**
 * Width and height in a text such as `1280x720`.
 * @param bounds pixels of an edge
 */
export function readSize(
  text: string,
  name: string,
  bounds: { readonly least: number; readonly most: number },
): { readonly width: number; readonly height: number } {
  const { least, most } = bounds;
  const [width = 0, height = 0] = (/^(\d+)x(\d+)$/.exec(text) ?? []).slice(1).map(Number);
  if (Math.min(width, height) < least || Math.max(width, height) > most) {
    throw invalid(name, `WIDTHxHEIGHT with edges of ${least} to ${most} pixels`);
  }
  return { width, height };
}

const imageTypes = ['image/png', 'image/jpeg', 'image/webp'];

/** Refuses a file that does not say to be an image. */
export function refuseNoImage(type: string, name: string): void {
  if (!imageTypes.includes(type)) {
    throw new OpenAiError(
      400,
      `Invalid file '${name}': unsupported mimetype ('${type}'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.`,
      name,
      'unsupported_file_mimetype',
    );
  }
}

/** Refuses an address of an image that is neither `http(s):` nor a `data:` URL in base64. Nothing is fetched. */
export function refuseNoImageUrl(url: unknown, name: string): string {
  if (typeof url !== 'string' || !isImageUrl(url)) {
    throw invalid(name, 'an http(s) URL or a base64 data URL of an image');
  }
  return url;
}
