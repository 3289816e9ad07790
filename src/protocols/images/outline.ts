import { GatewayError } from '../../errors.js';
import {
  type HeldMember,
  heldFields,
  heldMembers,
  imageCountMembers,
  type Sought,
} from '../../wire/count-members.js';
import { isObject, type JsonObject, textOf, textOrNull } from '../../wire/json.js';
import { foldName } from '../../wire/member-guard.js';
import type { FormPart } from '../../wire/multipart.js';
import { memberError, noFile, wrongValue } from '../../wire/reading.js';
import { imageName, isTextPart } from './decode-form.js';
import type { ImageStyle } from './fetched.js';
import { type ImageForm, type ImageFormat, type ImageOperation, imageMembers } from './request.js';
import { formOf, mostCount } from './schema.js';
import { formatOrNull } from './settings.js';

/*
 * How many images a body asks for. It is passed on as it came, to servers that differ on the member that counts and on
 * where it stands: what is metered is the largest number that any of them could read.
 */

const sought: Sought = {
  names: new Set(imageCountMembers.map(foldName)),
  // DashScope has `parameters`, Ark `sequential_image_generation_options`.
  holders: new Set(
    ['parameters', 'metadata', 'extra_body', 'sequential_image_generation_options'].map(foldName),
  ),
};

/**
 * The largest number of images that a JSON body asks for.
 * @param body its long strings may be cut
 * @param whole gives the body with its long strings
 * @returns null where it names none
 * @throws {GatewayError} of status 400, naming the member, for what could count and is no number
 */
export function countIn(body: JsonObject, whole: () => JsonObject): number | null {
  return largest(heldMembers(holdsText(body) ? whole() : body, sought));
}

/**
 * The same of a form, which has the members of objects as `parameters[n]` or `parameters.n`.
 * @throws {GatewayError} of status 400, naming the field
 */
export function countInForm(parts: readonly FormPart[]): number | null {
  return largest(heldFields(parts, sought));
}

/** Whether some holder is a text, which may be that of an object. */
function holdsText(body: JsonObject): boolean {
  return Object.entries(body).some(([name, value]) => {
    if (!sought.holders.has(foldName(name))) return false;
    return typeof value === 'string' || (isObject(value) && holdsText(value));
  });
}

function largest(members: Iterable<HeldMember>): number | null {
  let most: number | null = null;
  for (const { at, value, isInText, isFile } of members) {
    // Some servers take a file for a field of its name.
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

/** A number, or the text of one, which some servers take for it. */
function countOf(value: unknown, at: string): number | null {
  if (value === null || value === '') return null;
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > mostCount)
    throw wrongValue(at, `an integer between 1 and ${mostCount}`);
  return count;
}

/** What a call for images is routed and metered by. Of its images, only how they are given has been looked at. */
export interface ImageOutline {
  readonly form: ImageForm;
  /** The model's name as clients know it. */
  readonly model: string;
  /** The most images that its upstream could make of it; null where it does not say. */
  readonly count: number | null;
  readonly stream: boolean;
  /** As in `ImageRequest`, but null for a word that is for the upstream to say, too. */
  readonly responseFormat: ImageFormat | null;
  /** As the client has named them: `1024x1024`, `high`; null where it does not. */
  readonly size: string | null;
  readonly quality: string | null;
  /** An edit some image of which, or the mask, is no file of a form. */
  readonly hasImageTexts: boolean;
}

/**
 * Reads the outline of a JSON body.
 * @param body one that `passedGenerationsRequest` or `passedEditsRequest` has taken; its long strings may be cut
 * @param whole gives the body with them
 * @throws {GatewayError} of status 400 for a body of neither form
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
    size: sizeOf(
      form === 'input' && isObject(body.parameters) ? (body.parameters.size ?? body.size) : body.size,
    ),
    quality: textOrNull(body.quality),
    hasImageTexts: operation === 'edit' && imageMembers.some((name) => (body[name] ?? null) !== null),
  };
}

/**
 * Reads the outline of a form.
 * @param parts of a form among whose names `imageForm` has found nothing unclear
 * @throws {GatewayError} of status 400 for what of it cannot be read
 */
export function outlineOfForm(operation: ImageOperation, parts: readonly FormPart[]): ImageOutline {
  const textOf = (wanted: string): string => {
    const part = parts.find(({ name }) => name === wanted);
    // Some servers take a file for a field of its name.
    if (part !== undefined && part.filename !== null) throw noFile(wanted);
    return part?.data.toString('utf8') ?? '';
  };
  return {
    form: 'prompt',
    model: textOf('model'),
    count: countInForm(parts),
    stream: readFlag(textOf('stream')),
    responseFormat: formatOrNull(textOf('response_format')),
    size: sizeOf(namedIn(parts, 'size')),
    quality: namedIn(parts, 'quality'),
    hasImageTexts:
      operation === 'edit' &&
      parts.some((part) => (imageName.test(part.name) || part.name === 'mask') && isTextPart(part)),
  };
}

/** True for an upstream of the style that takes the body as it came. */
export function passesTo(style: ImageStyle, { form, hasImageTexts }: ImageOutline): boolean {
  return form === 'prompt' && style !== 'dashscope' && (style !== 'openai-files' || !hasImageTexts);
}

function readFlag(text: string): boolean {
  const lower = text.toLowerCase();
  if (lower === '' || lower === 'false') return false;
  if (lower === 'true') return true;
  throw wrongValue('stream', '"true" or "false"');
}

/** The text of a field that is for the upstream to judge; null for a file, and where there is none. */
function namedIn(parts: readonly FormPart[], wanted: string): string | null {
  const part = parts.find(({ name }) => name === wanted);
  return part === undefined || part.filename !== null ? null : part.data.toString('utf8') || null;
}

/** Some write the sizes of others with an asterisk. */
function sizeOf(size: unknown): string | null {
  return textOrNull(size)?.replace('*', 'x') || null;
}
