import { type TSchema, Type } from 'typebox';
import type { ImageSource } from '../media/image.js';
import { readImageText } from '../media/image-text.js';
import { name, nullable, record, text } from '../schema/members.js';
import { type JsonObject, numberOrNull, textOrNull } from '../wire/json.js';
import type { GuardSpec } from '../wire/member-guard.js';
import { wrongValue } from '../wire/reading.js';
import { type Member, memberOf, missingMember, readDuration } from './members.js';
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
    body,
    form: null,
  };
}

const integer = nullable(Type.Integer());
const atLeastOne = nullable(Type.Integer({ minimum: 1 }));
const pixels = nullable(Type.Integer({ minimum: 1, maximum: 99_999 }));

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
      bars: ['model', 'model_name', 'req_key'],
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
 * Reads the members of a body that has passed one of the schemas above.
 * @throws {GatewayError} of status 400, naming the member, for a length, an image or a prompt that is none
 */
export function readSharedMembers(format: VideoFormat, model: string, body: JsonObject): VideoRequest {
  const image = readImage(memberOf({ image: body.image }, 'image'));
  const imageTail = readImage(memberOf(body, 'image_tail'));
  const operation = image === null && imageTail === null ? 'text' : 'image';
  const prompt = textOrNull(body.prompt);
  if (operation === 'text' && prompt === null) throw missingMember('prompt', 'a text');
  if (operation === 'text' && prompt === '') throw wrongValue('prompt', 'a non-empty text');
  return {
    ...bareRequest(format, model, body),
    operation,
    prompt: prompt === '' ? null : prompt,
    negativePrompt: textOrNull(memberOf(body, 'negative_prompt')?.value),
    image,
    imageTail,
    seconds: readDuration(body.duration, 'duration'),
    width: numberOrNull(body.width),
    height: numberOrNull(body.height),
    aspectRatio: textOrNull(memberOf(body, 'aspect_ratio')?.value),
    fps: numberOrNull(body.fps),
    seed: numberOrNull(body.seed),
    count: numberOrNull(body.n),
    cfgScale: numberOrNull(memberOf(body, 'cfg_scale')?.value),
    mode: textOrNull(memberOf(body, 'mode')?.value),
  };
}

function readImage(member: Member | null): ImageSource | null {
  return typeof member?.value === 'string' ? readImageText(member.value, member.at) : null;
}
