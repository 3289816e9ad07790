import { GatewayError } from '../../errors.js';
import {
  type HeldMember,
  heldFields,
  heldMembers,
  imageCountMembers,
  type Sought,
} from '../../wire/count-members.js';
import {
  isObject,
  type JsonObject,
  memberError,
  noFile,
  textOf,
  textOrNull,
  wrongValue,
} from '../../wire/json.js';
import { foldName } from '../../wire/member-guard.js';
import type { FormPart } from '../../wire/multipart.js';
import { imageName, isTextPart } from './decode-form.js';
import type { ImageStyle } from './fetched.js';
import { type ImageForm, type ImageFormat, type ImageOperation, imageMembers } from './request.js';
import { formOf, mostCount } from './schema.js';
import { formatOrNull } from './settings.js';

/*
 * Determines how many images a body requests. The body is passed on unchanged, to servers that differ in the member
 * that counts and in its place. The largest number that any of them could read is metered.
 */

const sought: Sought = {
  names: new Set(imageCountMembers.map(foldName)),
  // `parameters` is DashScope's, `sequential_image_generation_options` Ark's.
  holders: new Set(
    ['parameters', 'metadata', 'extra_body', 'sequential_image_generation_options'].map(foldName),
  ),
};

/**
 * Returns the largest number of images that a JSON body requests.
 * @param body its long strings may be truncated
 * @param whole returns the body including its long strings
 * @returns null if it names none
 * @throws {GatewayError} with status 400, naming the member, for one that could count and is not a number
 */
export function countIn(body: JsonObject, whole: () => JsonObject): number | null {
  return largest(heldMembers(holdsText(body) ? whole() : body, sought));
}

/**
 * Returns the same for a form, in which members of objects are named `parameters[n]` or `parameters.n`.
 * @throws {GatewayError} with status 400, naming the field
 */
export function countInForm(parts: readonly FormPart[]): number | null {
  return largest(heldFields(parts, sought));
}

/** Returns whether a holder is a string, which may contain an object. */
function holdsText(body: JsonObject): boolean {
  return Object.entries(body).some(([name, value]) => {
    if (!sought.holders.has(foldName(name))) return false;
    return typeof value === 'string' || (isObject(value) && holdsText(value));
  });
}

function largest(members: Iterable<HeldMember>): number | null {
  let most: number | null = null;
  for (const { at, value, isInText, isFile } of members) {
    // Some servers read a file as the field of its name.
    if (isFile) throw noFile(at);
    if (isInText) throw inText(at);
    const count = countOf(value, at);
    if (count !== null) most = Math.max(most ?? count, count);
  }
  return most;
}

function inText(at: string): GatewayError {
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}' stands in a text, in which it could come twice: send it in an object.`,
  );
}

/** Reads a number, also as text, which some servers accept. */
function countOf(value: unknown, at: string): number | null {
  if (value === null || value === '') return null;
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > mostCount)
    throw wrongValue(at, `an integer between 1 and ${mostCount}`);
  return count;
}

/** Properties of a call for images that decide on routing and metering. Only the form of its images has been read. */
export interface ImageOutline {
  readonly form: ImageForm;
  /** The client's name for the model. */
  readonly model: string;
  /** Maximum number of images that the upstream could make for it. Null if it names none. */
  readonly count: number | null;
  readonly stream: boolean;
  /** As in `ImageRequest`, but also null for an unknown word, which the upstream judges. */
  readonly responseFormat: ImageFormat | null;
  /** As the client wrote them: `1024x1024`, `high`. Null if absent, and for a size that another member contradicts. */
  readonly size: string | null;
  readonly quality: string | null;
  /** Whether, in an edit, an image or the mask is not a file of a form. */
  readonly hasImageTexts: boolean;
}

/**
 * Reads the outline of a JSON body.
 * @param body a body that `passedGenerationsRequest` or `passedEditsRequest` has accepted; its long strings may be
 * truncated
 * @param whole returns the body including its long strings
 * @throws {GatewayError} with status 400 for a body of neither form
 */
export function outlineOfBody(
  operation: ImageOperation,
  body: JsonObject,
  whole: () => JsonObject,
): ImageOutline {
  const form = formOf(body);
  if (form instanceof GatewayError) throw form;
  return {
    form,
    model: textOf(body.model),
    count: countIn(body, whole),
    stream: body.stream === true,
    responseFormat: formatOrNull(body.response_format) ?? (form === 'input' ? 'url' : null),
    size: agreedSize(
      form === 'input' && isObject(body.parameters) ? (body.parameters.size ?? body.size) : body.size,
      (name) => body[name],
    ),
    quality: textOrNull(body.quality),
    hasImageTexts: operation === 'edit' && imageMembers.some((name) => (body[name] ?? null) !== null),
  };
}

/**
 * Reads the outline of a form.
 * @param parts parts of a form whose names `imageForm` found to be unambiguous
 * @throws {GatewayError} with status 400 for fields that cannot be read
 */
export function outlineOfForm(operation: ImageOperation, parts: readonly FormPart[]): ImageOutline {
  const textOf = (wanted: string): string => {
    const part = parts.find(({ name }) => name === wanted);
    // Some servers read a file as the field of its name.
    if (part !== undefined && part.filename !== null) throw noFile(wanted);
    return part?.data.toString('utf8') ?? '';
  };
  return {
    form: 'prompt',
    model: textOf('model'),
    count: countInForm(parts),
    stream: readFlag(textOf('stream')),
    responseFormat: formatOrNull(textOf('response_format')),
    size: agreedSize(namedIn(parts, 'size'), (name) => namedIn(parts, name)),
    quality: namedIn(parts, 'quality'),
    hasImageTexts:
      operation === 'edit' &&
      parts.some((part) => (imageName.test(part.name) || part.name === 'mask') && isTextPart(part)),
  };
}

/** Returns whether an upstream of this style accepts the body unchanged. */
export function passesTo(style: ImageStyle, { form, hasImageTexts }: ImageOutline): boolean {
  return form === 'prompt' && style !== 'dashscope' && (style !== 'openai-files' || !hasImageTexts);
}

function readFlag(text: string): boolean {
  const lower = text.toLowerCase();
  if (lower === '' || lower === 'false') return false;
  if (lower === 'true') return true;
  throw wrongValue('stream', '"true" or "false"');
}

/** Returns the text of a field that the upstream judges. Null for a file, and if it is absent. */
function namedIn(parts: readonly FormPart[], wanted: string): string | null {
  const part = parts.find(({ name }) => name === wanted);
  return part === undefined || part.filename !== null ? null : part.data.toString('utf8') || null;
}

/** Returns the size of a body, unless a member that some servers read in its place says otherwise. */
function agreedSize(stated: unknown, read: (name: string) => unknown): string | null {
  const size = sizeOf(stated);
  if (size === null) return null;
  const [width, height] = size.split('x');
  const others = { width, height, image_size: size, resolution: size };
  const isAgreed = Object.entries(others).every(([name, agreed]) => {
    const value = read(name) ?? '';
    return value === '' || (typeof value === 'number' ? `${value}` : sizeOf(value)) === agreed;
  });
  return isAgreed ? size : null;
}

/** Some clients write the sizes with an asterisk, as other vendors do. */
function sizeOf(size: unknown): string | null {
  return textOrNull(size)?.replace('*', 'x') || null;
}
