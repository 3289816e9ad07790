import { GatewayError } from '../../errors.js';
import { type ImageBytes, type ImageSource, imageExtension } from '../../media/image.js';
import { imageObject } from '../../media/image-text.js';
import { writeForm } from '../../wire/form-data.js';
import { isObject, wrongValue } from '../../wire/json.js';
import { nameWithoutBrackets, PartNames } from '../../wire/part-names.js';
import type { ImageCall, ImageRequest } from './request.js';
import { imageForm } from './schema.js';
import { writeSize } from './settings.js';
import { refuseUnclearAuthor } from './svg-author.js';

/** Members of a request besides its images, in the order in which they are written. */
type Settings = readonly (readonly [name: string, value: unknown])[];

/**
 * Writes a request for OpenAI's images API: JSON for a generation and for an edit of images that are given by URL, a
 * form for any other edit.
 *
 * The API lacks some members of a body with `input`. A negative prompt is added to the prompt, since it says what the
 * image must not show. `prompt_extend`, `watermark` and unknown members of `parameters` are left out. A body with
 * `prompt` was written for such an API and is passed on completely.
 * @param model the model's name at the upstream
 */
export function encodeOpenai(request: ImageRequest, model: string): ImageCall {
  const settings = settingsOf(request, model);
  if (request.operation === 'generate') {
    return {
      path: '/images/generations',
      contentType: 'application/json',
      body: [Buffer.from(JSON.stringify(Object.fromEntries(settings)))],
    };
  }
  const { images, mask } = request;
  if (images.some(isUrl) || (mask !== null && isUrl(mask))) return editByUrl(settings, request);
  const name = request.images.length === 1 ? 'image' : 'image[]';
  const files = request.images.map((image, index) => fileOf(image, name, `image-${index + 1}`));
  if (request.mask !== null) files.push(fileOf(request.mask, 'mask', 'mask'));
  const fields = imageFields(settings);
  return { path: '/images/edits', ...writeForm([...fields, ...files, ...request.otherFiles]) };
}

/**
 * Returns whether a family of the vendor's models refuses a member
 * (https://platform.openai.com/docs/api-reference/images/create). Without it, the format of the images is still honored:
 * the answer is converted to the requested one.
 */
export function isRefused(name: string, model: string): boolean {
  if (model.includes('gpt-image')) return name === 'response_format';
  return model.includes('dall-e') && onlyNewer.has(name);
}

const onlyNewer: ReadonlySet<string> = new Set([
  'background',
  'input_fidelity',
  'moderation',
  'output_compression',
  'output_format',
  'partial_images',
]);

/**
 * Lists the members of the client's body that such a request cannot express.
 * @param model the model's name at the upstream
 */
export function unsupportedByOpenai(
  { form, promptExtend, watermark, parameters, extras }: ImageRequest,
  model: string,
): string[] {
  const refused = Object.keys(extras).filter((name) => extras[name] !== null && isRefused(name, model));
  if (form === 'prompt') return refused;
  return [
    ...refused,
    ...(promptExtend === null ? [] : ['prompt_extend']),
    ...(watermark === null ? [] : ['watermark']),
    ...Object.keys(parameters).filter((name) => parameters[name] !== null),
  ];
}

function isUrl({ kind }: ImageSource): boolean {
  return kind === 'url';
}

/**
 * Images whose bytes are known are written as data URLs beside the others. Their megabytes of base64 are not copied
 * into a larger string.
 */
function editByUrl(settings: Settings, { images, mask }: ImageRequest): ImageCall {
  const before = JSON.stringify(Object.fromEntries(settings)).slice(0, -1);
  const body: Buffer[] = [Buffer.from(`${before},"images":[`)];
  for (const [index, image] of images.entries()) {
    if (index > 0) body.push(Buffer.from(','));
    body.push(...imageObject('image_url', image));
  }
  body.push(Buffer.from(mask === null ? ']}' : '],"mask":'));
  if (mask !== null) body.push(...imageObject('image_url', mask), Buffer.from('}'));
  return { path: '/images/edits', contentType: 'application/json', body };
}

const unwanted = '\n\nThe image must not show: ';

function settingsOf(request: ImageRequest, model: string): Settings {
  const { prompt, negativePrompt, size, count, form } = request;
  const all: Settings = [
    ['model', model],
    [
      'prompt',
      form === 'input' && negativePrompt !== null ? `${prompt}${unwanted}${negativePrompt}` : prompt,
    ],
    ['n', count],
    ['size', size === null ? null : writeSize(size, 'x')],
    ...(form === 'input'
      ? []
      : ([
          // Newer models refuse it, so it is only written if the client set it.
          ['response_format', request.responseFormat],
          ['negative_prompt', negativePrompt],
          ['prompt_extend', request.promptExtend],
          ['watermark', request.watermark],
          ['stream', request.stream || null],
        ] as const)),
    ...Object.entries(request.extras),
  ];
  return all.filter(([name, value]) => value !== null && value !== undefined && !isRefused(name, model));
}

interface ImageField {
  readonly name: string;
  readonly data: string;
}

/** Most fields of an edit that becomes a form: servers such as Starlette and Django take no more. */
const mostFields = 1000;
const longestField = 1000;

/**
 * Returns the members of an edit as the fields of a form. Members of an object are fields of their own, such as `svg[model]`.
 * An object in a list stays JSON, since fields do not say which of them belong together, and so does an empty one.
 * @throws {GatewayError} of status 400 for too many fields, and for names that are ambiguous in a form
 */
function imageFields(settings: Settings): readonly ImageField[] {
  const fields: ImageField[] = [];
  const names = new PartNames(imageForm);
  for (const [name, value] of settings) addFields(fields, name, value);
  for (const { name } of fields) {
    names.add(name);
    refuseUnclearAuthor(name);
  }
  return fields;
}

function addFields(fields: ImageField[], name: string, value: unknown): void {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) {
    for (const one of value) {
      if (isObject(one)) addField(fields, name, JSON.stringify(one));
      else addFields(fields, name, one);
    }
  } else if (isObject(value) && Object.keys(value).length > 0) {
    if (name.length > longestField) throw wrongValue(name.slice(0, longestField), 'a shorter name');
    for (const [inner, one] of Object.entries(value)) addFields(fields, `${name}[${inner}]`, one);
  } else addField(fields, name, isObject(value) ? '{}' : String(value));
}

function addField(fields: ImageField[], name: string, data: string): void {
  if (fields.length === mostFields)
    throw wrongValue(nameWithoutBrackets(name), `at most ${mostFields} values, each a field of a form`);
  fields.push({ name, data });
}

function fileOf(image: ImageSource, name: string, basename: string) {
  const { bytes, mediaType, filename } = requireBytes(image);
  return {
    name,
    filename: filename ?? `${basename}.${imageExtension(mediaType)}`,
    contentType: mediaType,
    data: bytes,
  };
}

function requireBytes(image: ImageSource): ImageBytes {
  if (image.kind === 'bytes') return image;
  throw new GatewayError('internal_error', null, { cause: `${image.at} was not fetched` });
}
