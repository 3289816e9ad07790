import { type TSchema, Type } from 'typebox';
import { GatewayError } from '../errors.js';
import type { ImageSource } from '../media/image.js';
import { readImageText } from '../media/image-text.js';
import type { CompiledSchema } from '../schema/accept.js';
import { name, nullable, record, text } from '../schema/members.js';
import { type JsonObject, numberOrNull, textOrNull } from '../wire/json.js';
import type { GuardSpec } from '../wire/member-guard.js';
import { missingValue, wrongValue } from '../wire/reading.js';
import {
  hasValue,
  lengthIn,
  type Member,
  memberOf,
  modelMembers,
  readCount,
  requireBody,
  wrongLength,
} from './members.js';
import type { VideoFormat, VideoRequest } from './task.js';

/** A request with its model and nothing else. */
export function bareRequest(format: VideoFormat, model: string, body: JsonObject): VideoRequest {
  return {
    format,
    operation: 'text',
    model,
    prompt: null,
    negativePrompt: null,
    image: null,
    imageTail: null,
    seconds: null,
    width: null,
    height: null,
    aspectRatio: null,
    fps: null,
    seed: null,
    count: null,
    cfgScale: null,
    mode: null,
    externalId: null,
    unreadLength: null,
    fault: null,
    body,
    form: null,
  };
}

/**
 * Reads a request. If it cannot be read in full, an upstream of its own format may still take it.
 * @param passed the request with its model and the members that matter for an upstream of its own format
 * @param read reads all of it, for other formats
 */
export function readOrPass(passed: VideoRequest, read: () => VideoRequest): VideoRequest {
  try {
    return read();
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    return { ...passed, fault };
  }
}

/** The length members of a request, from a number or a string. @param at path of the length in the client's body */
export function lengthOf(value: unknown, at: string): Pick<VideoRequest, 'seconds' | 'unreadLength'> {
  const seconds = lengthIn(value);
  return { seconds, unreadLength: seconds === null && hasValue(value) ? at : null };
}

const integer = nullable(Type.Integer());
const atLeastOne = nullable(Type.Integer({ minimum: 1 }));
const maxPixels = 99_999;
const pixels = nullable(Type.Integer({ minimum: 1, maximum: maxPixels }));

/** The members common to the generic and the vendork format, the generic format's extensions, and vendork's own. */
const sharedMembers: Readonly<Record<string, TSchema>> = {
  prompt: text,
  image: text,
  duration: nullable(Type.Union([Type.Number(), Type.String()])),
  width: pixels,
  height: pixels,
  fps: atLeastOne,
  seed: integer,
  n: atLeastOne,
  response_format: text,
  user: text,
  metadata: record,
  negative_prompt: text,
  cfg_scale: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  mode: text,
  aspect_ratio: text,
  image_tail: text,
};

/**
 * Members that must be unambiguous in the bodies below. `metadata` holds vendors' own members, and some upstreams let it
 * override the rest.
 */
export const videoGuarded: { readonly within: Readonly<Record<string, GuardSpec>> } = {
  within: {
    metadata: {
      reads: ['negative_prompt', 'image_tail', 'aspect_ratio', 'cfg_scale', 'mode'],
      bars: modelMembers,
    },
  },
};

/** Body of `POST /v1/video/generations`. */
export const genericBodyType = Type.Object({ ...sharedMembers, model: name });

/** Body of `POST /vendork/v1/videos/…`: the generic one or the vendor's own. */
export const vendorkBodyType = Type.Object({
  ...sharedMembers,
  model: nullable(name),
  model_name: nullable(name),
  camera_control: record,
  static_mask: text,
  dynamic_masks: nullable(Type.Array(Type.Object({}))),
  sound: nullable(Type.Union([Type.String(), Type.Boolean()])),
  watermark_info: record,
  callback_url: text,
  external_task_id: text,
});

/**
 * Reads a body of the generic or the vendork format: in full if it is as documented, else only the members that matter
 * for an upstream of the same format.
 * @param schema one of the two above
 * @param known the request's format and model, and members that only its format has
 * @throws {GatewayError} of status 400 for an invalid number of videos
 */
export function readSharedBody(schema: CompiledSchema, known: VideoRequest): VideoRequest {
  const { body } = known;
  const count = readCount(body.n, 'n');
  const hasImage = memberOf({ image: body.image }, 'image') !== null || memberOf(body, 'image_tail') !== null;
  const operation = hasImage ? 'image' : known.operation;
  const passed: VideoRequest = {
    ...known,
    operation,
    count,
    ...lengthOf(body.duration, 'duration'),
    width: pixelsIn(body.width),
    height: pixelsIn(body.height),
  };
  return readOrPass(passed, () => {
    requireBody(schema, body);
    return readSharedMembers(passed);
  });
}

/** @throws {GatewayError} of status 400, naming the member, for an invalid length, image or prompt */
function readSharedMembers(passed: VideoRequest): VideoRequest {
  const { body, operation, unreadLength } = passed;
  const image = readImage(memberOf({ image: body.image }, 'image'));
  const imageTail = readImage(memberOf(body, 'image_tail'));
  const prompt = textOrNull(body.prompt);
  if (operation === 'text' && prompt === null) throw missingValue('prompt', 'a text');
  if (operation === 'text' && prompt === '') throw wrongValue('prompt', 'a non-empty text');
  if (unreadLength !== null) throw wrongLength(unreadLength);
  return {
    ...passed,
    prompt: prompt === '' ? null : prompt,
    negativePrompt: textOrNull(memberOf(body, 'negative_prompt')?.value),
    image,
    imageTail,
    aspectRatio: textOrNull(memberOf(body, 'aspect_ratio')?.value),
    fps: numberOrNull(body.fps),
    seed: numberOrNull(body.seed),
    cfgScale: numberOrNull(memberOf(body, 'cfg_scale')?.value),
    mode: textOrNull(memberOf(body, 'mode')?.value),
  };
}

function pixelsIn(value: unknown): number | null {
  const count = numberOrNull(value) ?? 0;
  return Number.isInteger(count) && count > 0 && count <= maxPixels ? count : null;
}

function readImage(member: Member | null): ImageSource | null {
  return typeof member?.value === 'string' ? readImageText(member.value, member.at) : null;
}
