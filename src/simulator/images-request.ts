import { createHash } from 'node:crypto';
import { type Fields, oneFile } from './form.js';
import { isObject, type JsonObject } from './json.js';
import { integer, invalid, modelOf } from './json-request.js';
import { OpenAiError } from './openai-error.js';
import {
  flag,
  oneOf,
  readSize,
  refuseNoImage,
  refuseNoImageUrl,
  refuseUnknown,
  requiredText,
  textOrNull,
} from './openai-values.js';
import { type PromptWishes, promptWishes } from './prompt-wishes.js';

const mostCharacters = 32_000;
const mostImages = 16;
const edges = { least: 16, most: 4096 };
const automaticSize = '1024x1024';

const shared = [
  'background',
  'model',
  'n',
  'output_compression',
  'output_format',
  'partial_images',
  'prompt',
  'quality',
  'response_format',
  'safety_identifier',
  'size',
  'stream',
  'user',
];
const ofGenerations: ReadonlySet<string> = new Set([...shared, 'moderation', 'style']);
const ofEdits: ReadonlySet<string> = new Set([...shared, 'input_fidelity', 'moderation', 'images', 'mask']);

/** A request for images. */
export interface ImageRequest {
  readonly operation: 'generation' | 'edit';
  readonly wishes: PromptWishes;
  readonly count: number;
  readonly width: number;
  readonly height: number;
  readonly responseFormat: 'url' | 'b64_json';
  readonly quality: string;
  readonly background: string;
  readonly stream: boolean;
  readonly partialImages: number;
  readonly givenImages: number;
  /** What the images are made from, and the same for the same request. */
  readonly seed: string;
}

/** The types of the fields in the form of an edit. */
export const editFieldTypes = {
  numbers: ['n', 'output_compression', 'partial_images'],
  booleans: ['stream'],
};

/** @throws OpenAiError with what a caller did wrong. */
export function readGeneration(body: JsonObject): ImageRequest {
  refuseUnknown(body, ofGenerations);
  oneOf(body, 'style', ['vivid', 'natural']);
  return readShared(body, { operation: 'generation', images: [] });
}

/** @throws OpenAiError with what a caller did wrong. */
export function readEdit(fields: Fields): ImageRequest {
  const { body } = fields;
  if (fields.kind === 'form') {
    refuseUnknown({ ...body, ...Object.fromEntries(fields.files) }, new Set([...ofEdits, 'image']));
  } else {
    refuseUnknown(body, ofEdits);
  }
  oneOf(body, 'input_fidelity', ['low', 'high']);
  return readShared(body, {
    operation: 'edit',
    images: fields.kind === 'form' ? filesOf(fields) : urlsOf(body),
  });
}

/** What tells the given images from others. */
function filesOf(fields: Fields): readonly string[] {
  if ('image' in fields.body || 'images' in fields.body) {
    throw invalid('image', 'a file, with a name');
  }
  const files = [...(fields.files.get('image') ?? [])];
  refuseCount(files.length, 'image');
  const mask = oneFile(fields, 'mask');
  for (const file of files) {
    refuseNoImage(file.type, 'image');
  }
  if (mask !== null) {
    refuseNoImage(mask.type, 'mask');
    files.push(mask);
  }
  return files.map(({ bytes }) => createHash('sha256').update(bytes).digest('hex'));
}

function urlsOf(body: JsonObject): readonly string[] {
  const images: unknown = body.images ?? [];
  if (!Array.isArray(images)) {
    throw invalid('images', 'an array');
  }
  refuseCount(images.length, 'images');
  const mask = body.mask ?? null;
  return [
    ...images.map((image: unknown, index) => reference(image, `images[${index}]`)),
    ...(mask === null ? [] : [reference(mask, 'mask')]),
  ];
}

function reference(image: unknown, name: string): string {
  if (isObject(image) && typeof image.file_id === 'string' && image.image_url === undefined) {
    return image.file_id;
  }
  return refuseNoImageUrl(isObject(image) ? image.image_url : image, `${name}.image_url`);
}

function refuseCount(count: number, name: string): void {
  if (count === 0) {
    throw new OpenAiError(400, `Missing required parameter: '${name}'.`, name, 'missing_required_parameter');
  }
  if (count > mostImages) {
    throw invalid(name, `at most ${mostImages} images`);
  }
}

function readShared(
  body: JsonObject,
  given: { readonly operation: ImageRequest['operation']; readonly images: readonly string[] },
): ImageRequest {
  const model = modelOf(body, 'sim-image', false);
  const wishes = promptWishes(requiredText(body, 'prompt', mostCharacters));
  const size = textOrNull(body, 'size') ?? 'auto';
  const { width, height } = readSize(size === 'auto' ? automaticSize : size, 'size', edges);
  oneOf(body, 'moderation', ['auto', 'low']);
  textOrNull(body, 'user');
  refuseOtherThanPng(body);
  const responseFormat = oneOf(body, 'response_format', ['url', 'b64_json']);
  const quality = oneOf(body, 'quality', ['auto', 'low', 'medium', 'high', 'xhigh', 'max', 'standard', 'hd']);
  const background = oneOf(body, 'background', ['auto', 'opaque', 'transparent']);
  const digest = createHash('sha256').update(
    JSON.stringify([given, model, wishes.rest, width, height, quality, background]),
  );
  return {
    operation: given.operation,
    wishes,
    count: integer(body, 'n', 1, 10) ?? 1,
    width,
    height,
    responseFormat,
    quality: quality === 'auto' ? 'high' : quality,
    background: background === 'auto' ? 'opaque' : background,
    stream: flag(body, 'stream'),
    partialImages: integer(body, 'partial_images', 0, 3) ?? 0,
    givenImages: given.images.length,
    seed: digest.digest('hex').slice(0, 12),
  };
}

function refuseOtherThanPng(body: JsonObject): void {
  const format = oneOf(body, 'output_format', ['png', 'jpeg', 'webp']);
  if (format !== 'png') {
    throw new OpenAiError(
      400,
      `The simulator has no encoder for '${format}'. It can give 'png'.`,
      'output_format',
      'unsupported_value',
    );
  }
  if ((integer(body, 'output_compression', 0, 100) ?? 100) !== 100) {
    throw new OpenAiError(
      400,
      'Compression less than 100 is not supported for PNG output format',
      'output_compression',
      'invalid_value',
    );
  }
}
