import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
import type { FormPart } from '../../wire/multipart.js';
import { noFile, wrongValue } from '../../wire/reading.js';
import { countIn, countInForm } from './count.js';
import { imageName, isTextPart } from './decode-form.js';
import type { ImageStyle } from './fetched.js';
import { type ImageForm, type ImageFormat, type ImageOperation, imageMembers } from './request.js';
import { formOf } from './schema.js';
import { formatOrNull } from './settings.js';

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
    model: typeof body.model === 'string' ? body.model : '',
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
