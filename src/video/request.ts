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

/** A request that names its model and nothing else. */
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
 * Reads a request that an upstream of its own format may take although no other could be asked so.
 * @param passed the request of its model and the members that count there
 * @param read reads all of it for other formats
 */
export function readOrPass(passed: VideoRequest, read: () => VideoRequest): VideoRequest {
  try {
    return read();
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    return { ...passed, fault };
  }
}

/** The members of a length, whichever way it is written. @param at its path in the client's body */
export function lengthOf(value: unknown, at: string): Pick<VideoRequest, 'seconds' | 'unreadLength'> {
  const seconds = lengthIn(value);
  return { seconds, unreadLength: seconds === null && hasValue(value) ? at : null };
}

const integer = nullable(Type.Integer());
const atLeastOne = nullable(Type.Integer({ minimum: 1 }));
const mostPixels = 99_999;
const pixels = nullable(Type.Integer({ minimum: 1, maximum: mostPixels }));

/** The members that the generic format and vendork's have in common, its extensions, and vendork's own. */
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
 * What has to be clear in the bodies below: `metadata` is where the format puts what vendors add, and some upstreams
 * lay it over the rest.
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
 * Reads a body of the generic format or of vendork's: as a whole where it is as these document it, else what counts for an
 * upstream of the same format.
 * @param schema one of those above
 * @param known of the request: its format and model, and what is read of the format alone
 * @throws {GatewayError} of status 400 for a number of videos that is none
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

/** @throws {GatewayError} of status 400, naming the member, for a length, an image or a prompt that is none */
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
  return Number.isInteger(count) && count > 0 && count <= mostPixels ? count : null;
}

function readImage(member: Member | null): ImageSource | null {
  return typeof member?.value === 'string' ? readImageText(member.value, member.at) : null;
}
