import { createHash } from 'node:crypto';
import { countTokens } from '../answer/tokens.js';
import { type PromptWishes, promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import { type AnswerFormat, bodyReply, type Reply, type Step, streamReply } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, routes } from '../http/route.js';
import { pngImage } from '../media/png.js';
import { imageUrl } from '../media/result.js';
import { eventFormat, typedEvent } from '../media/route.js';
import { type Fields, oneFile, readFields } from '../openai/form.js';
import { created, openaiFormat } from '../openai/format.js';
import {
  flag,
  integer,
  invalid,
  missing,
  modelOf,
  oneOf,
  readSize,
  refuseNoImage,
  refuseNoImageUrl,
  refuseUnknown,
  requiredText,
  textOrNull,
} from '../openai/values.js';

const maxCharacters = 32_000;
const maxImages = 16;
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
interface ImageRequest {
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
  /** Seed of the images, the same for the same request. */
  readonly seed: string;
}

/** The types of the fields in the form of an edit. */
const editFieldTypes = {
  numbers: ['n', 'output_compression', 'partial_images'],
  booleans: ['stream'],
};

/** @throws RequestError with what a caller did wrong. */
function readGeneration(body: JsonObject): ImageRequest {
  refuseUnknown(body, ofGenerations);
  oneOf(body, 'style', ['vivid', 'natural']);
  return readShared(body, { operation: 'generation', images: [] });
}

/** @throws RequestError with what a caller did wrong. */
function readEdit(fields: Fields): ImageRequest {
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

/** Identifiers of the given images. */
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
  if (count === 0) throw missing(name);
  if (count > maxImages) {
    throw invalid(name, `at most ${maxImages} images`);
  }
}

function readShared(
  body: JsonObject,
  given: { readonly operation: ImageRequest['operation']; readonly images: readonly string[] },
): ImageRequest {
  const model = modelOf(body, 'sim-image', false);
  const wishes = promptWishes(requiredText(body, 'prompt', maxCharacters));
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
    throw new RequestError(
      400,
      `The simulator has no encoder for '${format}'. It can give 'png'.`,
      'output_format',
      'unsupported_value',
    );
  }
  if ((integer(body, 'output_compression', 0, 100) ?? 100) !== 100) {
    throw new RequestError(
      400,
      'Compression less than 100 is not supported for PNG output format',
      'output_compression',
      'invalid_value',
    );
  }
}

const tokensPerGivenImage = 258;
const pixelsPerToken = 256;
/** Characters of base64 in one piece of a body. */
const pieceLength = 64 * 1024;

/** `POST /v1/images/generations` and `POST /v1/images/edits` */
export const imageRoutes = [
  ...routes({
    path: '/v1/images/generations',
    answer: async (asked) => answer(asked, readGeneration((await readFields(asked, ['json'])).body)),
  }),
  ...routes({
    path: '/v1/images/edits',
    answer: async (asked) =>
      answer(asked, readEdit(await readFields(asked, ['form', 'json'], editFieldTypes))),
  }),
];

function answer(asked: RouteRequest, wanted: ImageRequest): Reply {
  const directives = [...asked.directives, ...wanted.wishes.faults];
  if (wanted.stream) {
    return streamReply({ events: events(wanted), answerFormat: streamFormat(wanted), directives });
  }
  if (wanted.responseFormat === 'b64_json') {
    return {
      ...bodyReply({ status: 200, body: '', answerFormat: openaiFormat, directives }),
      length: null,
      steps: encodedBody(wanted),
    };
  }
  const data = Array.from({ length: wanted.count }, (_, index) => ({
    url: imageUrl(asked.origin, imageOf(wanted, index), wanted.wishes.content),
    revised_prompt: wanted.wishes.rest,
  }));
  const body = { created, data, ...described(wanted), usage: usageOf(wanted) };
  return jsonReply({ answerFormat: openaiFormat, directives }, body);
}

function imageOf({ width, height, seed }: ImageRequest, index: number): Parameters<typeof pngImage>[0] {
  return { width, height, seed: `${seed}-${index}` };
}

function described({ background, quality, width, height }: ImageRequest): object {
  return { background, output_format: 'png', quality, size: `${width}x${height}` };
}

function usageOf(wanted: ImageRequest): object {
  const text = countTokens(wanted.wishes.rest);
  const images = wanted.givenImages * tokensPerGivenImage;
  const output = Math.ceil((wanted.width * wanted.height) / pixelsPerToken) * wanted.count;
  return {
    input_tokens: text + images,
    input_tokens_details: { text_tokens: text, image_tokens: images },
    output_tokens: output,
    total_tokens: text + images + output,
  };
}

/** The body image by image, so that only one is in memory. */
function* encodedBody(wanted: ImageRequest): Generator<Step> {
  const text = (bytes: string): Step => ({ kind: 'data', bytes, tokens: 0 });
  yield text(`{"created":${created},"data":[`);
  for (let index = 0; index < wanted.count; index += 1) {
    yield text(`${index === 0 ? '' : ','}{"b64_json":"`);
    const image = pngImage(imageOf(wanted, index)).toString('base64');
    for (let at = 0; at < image.length; at += pieceLength) {
      yield text(image.slice(at, at + pieceLength));
    }
    yield text(`","revised_prompt":${JSON.stringify(wanted.wishes.rest)}}`);
  }
  const rest = JSON.stringify({ ...described(wanted), usage: usageOf(wanted) });
  yield text(`],${rest.slice(1)}`);
}

function eventType(wanted: ImageRequest, what: 'partial_image' | 'completed'): string {
  return `image_${wanted.operation}.${what}`;
}

function* events(wanted: ImageRequest): Generator<Step> {
  const shown = { created_at: created, ...described(wanted) };
  for (let index = 0; index < wanted.count; index += 1) {
    const image = imageOf(wanted, index);
    for (let partial = 0; partial < wanted.partialImages; partial += 1) {
      const seed = `${image.seed}-partial-${partial}`;
      const event = {
        type: eventType(wanted, 'partial_image'),
        b64_json: pngImage({ ...image, seed }).toString('base64'),
        partial_image_index: partial,
        ...shown,
      };
      yield { kind: 'data', bytes: typedEvent(event), tokens: 0 };
    }
    const event = {
      type: eventType(wanted, 'completed'),
      b64_json: pngImage(image).toString('base64'),
      ...shown,
      usage: usageOf({ ...wanted, count: 1 }),
    };
    yield { kind: 'data', bytes: typedEvent(event), tokens: 0 };
  }
}

function streamFormat(wanted: ImageRequest): AnswerFormat {
  return eventFormat((text) => ({
    type: eventType(wanted, 'partial_image'),
    b64_json: text,
    partial_image_index: 0,
    created_at: created,
    ...described(wanted),
  }));
}
