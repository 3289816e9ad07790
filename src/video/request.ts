import { createHash } from 'node:crypto';
import { type TSchema, Type } from 'typebox';
import { GatewayError } from '../errors.js';
import type { ImageSource } from '../media/image.js';
import { readImageText } from '../media/image-text.js';
import type { CompiledSchema } from '../schema/accept.js';
import { name, nullable, record, text } from '../schema/members.js';
import { countMembers, type HeldMember, heldFields, heldMembers } from '../wire/count-members.js';
import {
  isObject,
  type JsonObject,
  missingValue,
  numberOrNull,
  textOrNull,
  wrongValue,
} from '../wire/json.js';
import { foldName, type GuardSpec } from '../wire/member-guard.js';
import type { VideoFormat, VideoRequest } from './task.js';

/** Members that name the model in one of the formats. Servers that merge objects use the one of the overriding object. */
const modelMembers = ['model', 'model_name', 'req_key'] as const;

/**
 * Tells a request from another one under the same idempotency key. The store keeps it for a day, and other releases
 * compare it: it is made of what the client sent, and of nothing that a release reads from that in its own way.
 */
export function fingerprintOf({ format, model, body, form }: VideoRequest): string {
  const hash = createHash('sha256').update(JSON.stringify({ format, model, body }));
  // The boundary of a form differs each time, so its parts are hashed.
  for (const { name, data } of form ?? [])
    hash.update(`${JSON.stringify(name)}${data.length}\n`).update(data);
  return hash.digest('hex').slice(0, 32);
}

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
    json: null,
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

/*
 * How the members of bodies that ask for videos are read.
 */

/**
 * Objects in which servers look for top-level members, and which some merge over these; Replicate and fal have `input`.
 */
const prompts: ReadonlySet<string> = new Set([foldName('input')]);
const holders: ReadonlySet<string> = new Set([
  ...['metadata', 'extra_body', 'parameters', 'config'].map(foldName),
  ...prompts,
]);

/**
 * The members of these names in a request's body or form, and in the objects where some servers also look for them.
 * @param names folded by `foldName`
 * @throws {GatewayError} of status 400 for a string in place of such an object that cannot be parsed
 */
export function membersNamed(
  { body, form }: Pick<VideoRequest, 'body' | 'form'>,
  names: ReadonlySet<string>,
): Iterable<HeldMember> {
  const sought = { names, holders, prompts };
  return form === null ? heldMembers(body, sought) : heldFields(form, sought);
}

/** A member with its path in the client's body. */
export interface Member {
  readonly value: unknown;
  readonly at: string;
}

/**
 * Finds a member that only some vendors have: at the top of the body, else in its `metadata`, the generic format's place
 * for such members.
 * @returns null for one that is absent, null, or an empty text
 */
export function memberOf(body: JsonObject, name: string): Member | null {
  if (isGiven(body, name)) return { value: body[name], at: name };
  const { metadata } = body;
  if (!isObject(metadata) || !isGiven(metadata, name)) return null;
  return { value: metadata[name], at: `metadata.${name}` };
}

/** Path of the first of these members that the body has; the first name if it has none. */
export function pathOfMember(body: JsonObject, names: readonly [string, ...string[]]): string {
  for (const name of names) {
    const member = memberOf(body, name);
    if (member !== null) return member.at;
  }
  return names[0];
}

/** @throws {GatewayError} of status 400, naming the first member that violates the schema */
export function requireBody(schema: CompiledSchema, body: JsonObject): void {
  if (!schema.check(body)) throw schema.explain(body);
}

const decimal = /^\d{1,9}(?:\.\d{1,9})?$/;

/** A number, also written as a string: 5, 5.5 and "5"; null for anything else. */
export function numberIn(value: unknown): number | null {
  return typeof value === 'string' && decimal.test(value) ? Number(value) : numberOrNull(value);
}

/** The same for a length: above zero, and printed without an exponent. */
function lengthIn(value: unknown): number | null {
  const length = numberIn(value) ?? 0;
  return length > 0 && decimal.test(String(length)) ? length : null;
}

/**
 * Reads a length in seconds.
 * @param at path in the client's body
 * @returns null without one
 * @throws {GatewayError} of status 400 for anything but a number above zero
 */
export function readDuration(value: unknown, at: string): number | null {
  if (!hasValue(value)) return null;
  const seconds = lengthIn(value);
  if (seconds === null) throw wrongLength(at);
  return seconds;
}

/** The 400 for a length that is not a number above zero. */
export function wrongLength(at: string): GatewayError {
  return wrongValue(at, 'a number above zero, such as 5 or "5"');
}

/**
 * Reads the number of videos requested.
 * @param at path in the client's body
 * @returns null without one
 * @throws {GatewayError} of status 400 for anything but a whole number above zero, since each video is charged
 */
function readCount(value: unknown, at: string): number | null {
  if (!hasValue(value)) return null;
  const count = numberIn(value) ?? 0;
  if (!Number.isInteger(count) || count < 1 || count > maxVideos)
    throw wrongValue(at, `an integer between 1 and ${maxVideos}`);
  return count;
}

const maxVideos = 1000;

function isGiven(body: JsonObject, name: string): boolean {
  return Object.hasOwn(body, name) && hasValue(body[name]);
}

/** Whether a value is anything but undefined, null and an empty string. */
export function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** The vendorj format counts length in frames: 24 a second plus the first frame, so 121 for five seconds. */
export const framesPerSecond = 24;

/** The number of frames of a video of this many seconds. */
export function framesOf(seconds: number): number {
  return Math.round(framesPerSecond * seconds) + 1;
}

/*
 * Video formats differ in the names of length and count, and servers that know several formats read all of these names.
 * Every member that an upstream may read as either must agree with what the gateway read, since that is charged.
 */

type Measure = 'seconds' | 'frames' | 'count';

const names: Readonly<Record<Measure, readonly string[]>> = {
  seconds: [
    ...['seconds', 'n_seconds', 'num_seconds', 'video_seconds'],
    ...['duration', 'duration_seconds', 'duration_sec', 'video_duration', 'video_length'],
  ],
  frames: ['frames', 'n_frames', 'num_frames', 'frame_count', 'video_frames'],
  count: [...countMembers, ...['video_count', 'num_videos', 'number_of_videos']],
};
const measures = new Map(
  Object.entries(names).flatMap(([measure, all]) => all.map((name) => [foldName(name), measure as Measure])),
);

/** The members that the gateway reads in each format: of the length, and of the count if the format has one. */
const read: Readonly<Record<VideoFormat, { readonly length: string; readonly count: string | null }>> = {
  compat: { length: 'seconds', count: null },
  generic: { length: 'duration', count: 'n' },
  vendork: { length: 'duration', count: 'n' },
  vendorj: { length: 'frames', count: null },
};

const modelNames: ReadonlySet<string> = new Set(modelMembers.map(foldName));
const sought: ReadonlySet<string> = new Set([...measures.keys(), ...modelNames]);

/**
 * Refuses a request in which some servers would read another model, another length or more videos than the gateway did.
 * @throws {GatewayError} of status 400, naming the member and the one to send instead
 */
export function requireMetered(request: VideoRequest): void {
  for (const member of membersNamed(request, sought)) check(request, member);
}

function check(request: VideoRequest, { path, at, name, value, isInText }: HeldMember): void {
  const isHeld = path.length > 1;
  if (isHeld && modelNames.has(name)) throw otherModel(at);
  const measure = measures.get(name);
  if (measure === undefined || (!isInText && (value === null || value === ''))) return;
  const { length, count } = read[request.format];
  const own = measure === 'count' ? count : length;
  // Its reader has already checked that member.
  if (!isHeld && own !== null && foldName(own) === name) return;
  const number = numberIn(value);
  if (isInText || number === null || number !== meteredOf(request, measure)) throw unmetered(at, own);
}

/** The charged amount in a measure; null if the request does not state it in that measure. */
function meteredOf({ format, seconds, count, body }: VideoRequest, measure: Measure): number | null {
  if (measure === 'count') return count ?? 1;
  if (measure === 'seconds') return seconds;
  return format === 'vendorj' ? numberIn(body.frames) : null;
}

function otherModel(at: string): GatewayError {
  return new GatewayError(
    'unsupported_parameter',
    `'${at}' could count in place of the model that the request names: leave it out.`,
    { param: at },
  );
}

function unmetered(at: string, own: string | null): GatewayError {
  const advice =
    own === null
      ? 'could ask for more videos than the one that a request makes here: leave it out, and send a request for each video'
      : `could count in place of '${own}', which is what is read and metered here: send '${own}' alone`;
  return new GatewayError('unsupported_parameter', `'${at}' ${advice}.`, { param: at });
}
