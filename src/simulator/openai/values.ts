import type { JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';

/** The refusal of a parameter's value. */
export function invalid(param: string, what: string): RequestError {
  return new RequestError(400, `Invalid value for '${param}': expected ${what}.`, param, 'invalid_value');
}

/** The refusal of a value that is not one of these words. */
export function unsupported(found: unknown, words: readonly string[], param: string): RequestError {
  const list = words.map((word) => `'${word}'`).join(', ');
  const message = `Invalid value: '${String(found)}'. Supported values are: ${list}.`;
  return new RequestError(400, message, param, 'invalid_value');
}

/** The refusal of a text of more than `most` characters. */
export function tooLong({ length }: string, most: number, param: string): RequestError {
  const message = `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${length} instead.`;
  return new RequestError(400, message, param, 'string_above_max_length');
}

/** The refusal of a body without a parameter. */
export function missing(param: string): RequestError {
  return new RequestError(
    400,
    `Missing required parameter: '${param}'.`,
    param,
    'missing_required_parameter',
  );
}

/** The value of a required parameter. */
export function required(body: JsonObject, name: string): unknown {
  const value = body[name] ?? null;
  if (value === null) throw missing(name);
  return value;
}

/** The value of a parameter that is a whole number within bounds, or null without one. */
export function integer(body: JsonObject, name: string, least: number, most: number): number | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    const upTo = most === Infinity ? 'on' : `to ${most}`;
    throw invalid(name, `an integer from ${least} ${upTo}`);
  }
  return value;
}

/**
 * The model that a request names.
 * @param known the model that the route offers
 * @param optional whether it is the default
 */
export function modelOf(body: JsonObject, known: string, optional: boolean): string {
  const model = optional && (body.model ?? null) === null ? known : required(body, 'model');
  if (typeof model !== 'string') {
    throw invalid('model', 'a string');
  }
  if (model !== known) {
    throw new RequestError(404, `The model '${model}' does not exist.`, 'model', 'model_not_found');
  }
  return model;
}

/** Whether a value is a text in the form of tokens. */
export function isTokens(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => Number.isInteger(one) && Number(one) >= 0)
  );
}

const address = /^https?:\/\/[^\s/]+/i;
const dataHead = /^data:image\/[a-z0-9.+-]+;base64,/i;

/** Whether a text is base64 (RFC 4648, section 4) and nothing else. */
export function isBase64(text: string): boolean {
  return /^[^=]/.test(text) && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''));
}

/** Whether a text is an `http(s):` address. */
export function isAddress(text: string): boolean {
  return address.test(text);
}

/** Whether a text is the URL of an image, or a `data:` URL in base64. Nothing is fetched. */
export function isImageUrl(text: string): boolean {
  const head = dataHead.exec(text)?.[0];
  return head === undefined ? isAddress(text) : isBase64(text.slice(head.length));
}

/** The value of a parameter that is a text, or null without one. */
export function textOrNull(body: JsonObject, name: string): string | null {
  const value = body[name] ?? null;
  if (value !== null && typeof value !== 'string') {
    throw invalid(name, 'a string');
  }
  return value;
}

/**
 * The text of a required member.
 * @param path path of the object in the body; empty for the body itself
 */
export function textIn(value: JsonObject, name: string, path: string): string {
  const text = value[name] ?? null;
  const place = path === '' ? name : `${path}.${name}`;
  if (text === null) throw missing(place);
  if (typeof text !== 'string') throw invalid(place, 'a string');
  return text;
}

/** The value of a parameter that must be a text of one to `most` characters. */
export function requiredText(body: JsonObject, name: string, most: number): string {
  const text = textOrNull(body, name);
  if (text === null) throw missing(name);
  if (text === '') {
    throw new RequestError(
      400,
      `Invalid '${name}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
      name,
      'empty_string',
    );
  }
  if (text.length > most) throw tooLong(text, most, name);
  return text;
}

/** The value of a parameter with one of these words; the first of them if it is absent. */
export function oneOf<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const value = body[name] ?? words[0];
  const found = words.find((word) => word === value);
  if (found === undefined) throw unsupported(value, words, name);
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

/** The stop sequences. */
export function readStop({ stop }: JsonObject): readonly string[] {
  const list: readonly unknown[] = stop === undefined || stop === null ? [] : [stop].flat();
  if (list.length > 4 || !list.every((one): one is string => typeof one === 'string')) {
    throw invalid('stop', 'a string or up to four strings');
  }
  return list.filter((one) => one !== '');
}

/** Refuses a body with an unknown member. */
export function refuseUnknown(body: JsonObject, names: ReadonlySet<string>): void {
  const unknown = Object.keys(body).find((name) => !names.has(name));
  if (unknown !== undefined) {
    throw new RequestError(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
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

/** Refuses a file whose declared type is not an image. */
export function refuseNoImage(type: string, name: string): void {
  if (!imageTypes.includes(type)) {
    throw new RequestError(
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
