import { Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import { type ImageSource, readImageFile } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { compileSchema } from '../../schema/compile.js';
import { name, nullable, text } from '../../schema/members.js';
import {
  isObject,
  type JsonObject,
  noFile,
  numberOrNull,
  textOf,
  textOrNull,
  wrongValue,
} from '../../wire/json.js';
import type { FormPart } from '../../wire/multipart.js';
import type { PartRules } from '../../wire/part-names.js';
import { codeWord } from '../failure-codes.js';
import {
  bareRequest,
  hasValue,
  lengthOf,
  type Member,
  memberOf,
  readDuration,
  readOrPass,
  requireBody,
} from '../request.js';
import { isRatio, parseSize } from '../shape.js';
import type { TaskState, VideoClientFormat, VideoRequest, VideoTask } from '../task.js';
import { isReference } from '../unsupported.js';

const longestPrompt = 32_000;

const bodySchema = compileSchema(
  Type.Object({
    model: name,
    prompt: name,
    seconds: nullable(Type.Union([Type.Number(), Type.String()])),
    size: text,
    input_reference: nullable(Type.Union([Type.String(), Type.Object({ image_url: text, file_id: text })])),
  }),
);

/** What every body has to satisfy. */
const passedSchema = compileSchema(Type.Object({ model: name }));

/** Text fields that may occur only once. */
const singleFields = ['model', 'prompt', 'seconds', 'size'];
/** The guard against ambiguous members. */
export const compatGuard = bodySchema.guard;
/** The guard of a form, in which `input_reference` may be repeated. */
export const compatForm: PartRules = { guard: compatGuard, many: new Set(['input_reference']) };

const imageUrlField = 'input_reference[image_url]';
const fileIdField = 'input_reference[file_id]';
/** Fields of a form that may hold the image as text. */
const imageFields = ['input_reference', 'input_reference[]', imageUrlField];

/**
 * Reads the form of `POST /v1/videos`.
 * @param parts parts of the form in order; they are kept for an upstream of the same format
 * @throws {GatewayError} of status 400, naming the field
 */
export function readCompatForm(parts: readonly FormPart[]): VideoRequest {
  const fields = new Map<string, string | string[]>();
  const files: FormPart[] = [];
  for (const part of parts) {
    if (isFile(part)) {
      // Some servers read a file as a text field of its name.
      if (singleFields.includes(part.name)) throw noFile(part.name);
      // A browser sends an empty part when no file was chosen.
      if (isReference(part.name) && (part.data.length > 0 || part.filename !== '')) files.push(part);
      continue;
    }
    const value = part.data.toString('utf8');
    const before = fields.get(part.name);
    if (before !== undefined && singleFields.includes(part.name))
      throw wrongValue(part.name, 'one value, and the form has several');
    fields.set(part.name, before === undefined ? value : [before, value].flat());
  }
  const body: JsonObject = Object.fromEntries(fields);
  const hasImage = files.length > 0 || imageFields.some((at) => [body[at]].flat().some(hasValue));
  const passed = { ...passedRequest(body, hasImage || hasValue(body[fileIdField])), form: parts };
  return readOrPass(passed, () => ({
    ...passed,
    ...readFields(body, formReference(body, files)),
    form: parts,
  }));
}

/**
 * Reads the JSON body of `POST /v1/videos`.
 * @throws {GatewayError} of status 400, naming the member
 */
export function readCompatBody(body: JsonObject): VideoRequest {
  const passed = passedRequest(body, hasValue(body.input_reference));
  return readOrPass(passed, () => readJsonFields(body));
}

/** The members of a request that matter for an upstream of the same format. */
function passedRequest(body: JsonObject, hasImage: boolean): VideoRequest {
  requireBody(passedSchema, body);
  return {
    ...bareRequest('compat', String(body.model), body),
    operation: hasImage ? 'image' : 'text',
    ...lengthOf(body.seconds, 'seconds'),
  };
}

function readJsonFields(body: JsonObject): VideoRequest {
  requireBody(bodySchema, body);
  const reference = body.input_reference;
  if (!isObject(reference)) return readFields(body, referenceText(reference, 'input_reference'));
  if (hasValue(reference.file_id)) throw noFiles('input_reference.file_id', 'input_reference.image_url');
  return readFields(body, referenceText(reference.image_url, 'input_reference.image_url'));
}

function readFields(body: JsonObject, image: ImageSource | null): VideoRequest {
  requireBody(bodySchema, { ...body, input_reference: null });
  const prompt = String(body.prompt);
  if (prompt.length > longestPrompt && [...prompt].length > longestPrompt)
    throw wrongValue('prompt', `a text of at most ${longestPrompt} characters`);
  return {
    ...bareRequest('compat', String(body.model), body),
    operation: image === null ? 'text' : 'image',
    prompt,
    image,
    // Clients send a number although the vendor documents a string.
    seconds: readDuration(body.seconds, 'seconds'),
    negativePrompt: readText(memberOf(body, 'negative_prompt')),
    seed: readSeed(memberOf(body, 'seed')?.value),
    ...readSize(body.size, memberOf(body, 'aspect_ratio')?.value),
  };
}

function isFile({ name, filename, contentType }: FormPart): boolean {
  return filename !== null || (isReference(name) && (contentType?.startsWith('image/') ?? false));
}

function formReference(body: JsonObject, files: readonly FormPart[]): ImageSource | null {
  if (hasValue(body[fileIdField])) throw noFiles(fileIdField, imageUrlField);
  const texts = imageFields.flatMap((at) =>
    [body[at]].flat().flatMap((value) => (hasValue(value) ? [{ at, value }] : [])),
  );
  if (files.length + texts.length > 1)
    throw wrongValue('input_reference', 'one image, and the form has several');
  const [file] = files;
  if (file !== undefined) return readImageFile(file, file.name);
  const [first] = texts;
  return first === undefined ? null : referenceText(first.value, first.at);
}

function referenceText(value: unknown, at: string): ImageSource | null {
  const given = textOf(value);
  return given === '' ? null : readImageText(given, at);
}

function noFiles(at: string, instead: string): GatewayError {
  return new GatewayError(
    'unsupported_parameter',
    `'${at}' is not supported: no files are kept here. Send the image itself as the file 'input_reference' of a form, or its URL as '${instead}'.`,
    { param: at },
  );
}

function readText(member: Member | null): string | null {
  if (member !== null && typeof member.value !== 'string') throw wrongValue(member.at, 'a text');
  return textOrNull(member?.value);
}

/** Reads a seed. The format does not document it, so that one that is not an integer is left out and not refused. */
function readSeed(value: unknown): number | null {
  // A form has it as a text.
  const seed = typeof value === 'string' && value.trim() !== '' ? Number(value) : numberOrNull(value);
  return Number.isInteger(seed) ? seed : null;
}

/**
 * Reads a size in pixels, or an aspect ratio, which others write as a member of its own. The format does not document
 * that member, so that one that is not a ratio is left out and not refused.
 */
function readSize(value: unknown, ratio: unknown): Pick<VideoRequest, 'width' | 'height' | 'aspectRatio'> {
  const aspectRatio = typeof ratio === 'string' && isRatio(ratio) ? ratio : null;
  const shape = { width: null, height: null, aspectRatio };
  if (!hasValue(value)) return shape;
  const size = typeof value === 'string' ? parseSize(value) : null;
  if (size !== null) return { ...shape, ...size };
  if (typeof value === 'string' && isRatio(value)) return { ...shape, aspectRatio: value };
  throw wrongValue('size', 'a width and a height in pixels, such as "1280x720", or a shape such as "16:9"');
}

/** The clients' words for the states. */
export const compatStates: Readonly<Record<TaskState, string>> = {
  submitting: 'queued',
  queued: 'queued',
  in_progress: 'in_progress',
  completed: 'completed',
  failed: 'failed',
};

function required(task: VideoTask): Record<string, unknown> {
  return {
    id: task.id,
    object: 'video',
    model: task.model,
    status: compatStates[task.state],
    progress: task.progress,
    created_at: unixSeconds(task.createdAt),
    seconds: task.seconds,
  };
}

function errorOf({ error }: VideoTask): JsonObject | null {
  return error === null ? null : { code: codeWord(error), message: error.message };
}

function unixSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}

/** OpenAI's video format. */
export const compatClientFormat: VideoClientFormat = {
  created: (task) =>
    JSON.stringify({
      ...required(task),
      ...(task.completedAt === null ? {} : { completed_at: unixSeconds(task.completedAt) }),
      expires_at: unixSeconds(task.expiresAt),
      ...(task.size === null ? {} : { size: task.size }),
      ...(task.error === null ? {} : { error: errorOf(task) }),
    }),
  // The error is added so that clients can see why a task failed.
  shown: (task) =>
    JSON.stringify(task.state === 'failed' ? { ...required(task), error: errorOf(task) } : required(task)),
  missing: () => null,
};
