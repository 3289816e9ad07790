import { GatewayError } from '../errors.js';
import { isObject, type JsonObject, listOf } from '../wire/json.js';
import { hasValue, type Member, memberOf, pathOfMember } from './request.js';
import type { VideoFormat, VideoHint, VideoRequest } from './task.js';

/**
 * The 400 for a member that the upstream's format cannot express.
 * @param at path in the client's body
 * @param to the format of the upstream
 * @param detail which value, if the name of the member does not show it
 */
export function unsupportedMember(at: string, to: VideoFormat, detail = ''): GatewayError {
  const what = detail === '' ? '' : ` ${detail}`;
  return new GatewayError(
    'unsupported_parameter',
    `'${at}'${what} is not supported for this model: its upstream speaks the ${to} video format, which cannot say it. ` +
      'Leave it out, or use another model.',
    { param: at },
  );
}

/** Members that only one vendor's format has, and without which a video would be another one. */
const ownContent = {
  vendork: [
    ...['camera_control', 'static_mask', 'dynamic_masks', 'sound'],
    ...['multi_shot', 'multi_prompt', 'element_list', 'voice_list'],
  ],
  vendorj: ['template_id', 'camera_strength'],
} as const;
/** The others that only vendork has. */
const ownDetails = ['shot_type', 'watermark_info'];
const formatsOfOwn: ReadonlySet<VideoFormat> = new Set(['generic', 'vendork', 'vendorj']);

/** Whether a member of these says that a video is as it would be without it. */
function isSilent(value: unknown): boolean {
  return value === 'off' || value === false || (Array.isArray(value) && value.length === 0);
}

/** Those of these members that a request uses. */
function ownMembers({ format, body }: VideoRequest, names: readonly string[]): Member[] {
  if (!formatsOfOwn.has(format)) return [];
  return names.flatMap((name) => {
    const member = memberOf(body, name);
    return member === null || isSilent(member.value) ? [] : [member];
  });
}

/**
 * The members of vendors' own that an upstream of another format than the request's takes, by their names.
 * @throws {GatewayError} of status 400, naming the client's member, for one without which the video would be another one
 */
export function ownMembersFor(request: VideoRequest, to: VideoFormat): JsonObject {
  const names = takenNames(to);
  for (const member of ownMembers(request, [...ownContent.vendork, ...ownContent.vendorj]))
    if (!names.includes(nameOf(member))) throw unsupportedMember(member.at, to);
  return Object.fromEntries(ownMembers(request, names).map((member) => [nameOf(member), member.value]));
}

function takenNames(to: VideoFormat): readonly string[] {
  if (to === 'compat') return [];
  if (to === 'vendorj') return ownContent.vendorj;
  return [...ownContent.vendork, ...ownDetails, ...(to === 'generic' ? ownContent.vendorj : [])];
}

function nameOf({ at }: Member): string {
  return at.slice(at.lastIndexOf('.') + 1);
}

/** Images of a vendorj request that other formats can express: the first and the last. */
const maxImages = 2;

/**
 * Refuses what no other format can express: members not as documented, files of unknown names in a form, a third image,
 * and a callback URL, which would be called with the upstream's own id or never.
 * @param to the format of the upstream, which is not the client's
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function refuseForeign({ format, body, form, fault }: VideoRequest, to: VideoFormat): void {
  if (fault !== null) throw fault;
  const file = form?.find(({ name, filename }) => filename !== null && !isReference(name));
  if (file !== undefined) throw unsupportedMember(file.name, to);
  if (format === 'vendorj') {
    let count = 0;
    for (const name of ['binary_data_base64', 'image_urls']) {
      const list = body[name];
      const images = listOf(list);
      if (count + images.length > maxImages) throw unsupportedMember(`${name}[${maxImages - count}]`, to);
      count += images.length;
    }
  }
  const callback = format === 'compat' ? null : memberOf(body, 'callback_url');
  if (callback !== null) throw unsupportedMember(callback.at, to);
}

/** Members that are read in bodies of each format, at the top level. */
const topLevel: Readonly<Record<VideoFormat, readonly string[]>> = {
  compat: ['model', 'prompt', 'seconds', 'size', 'input_reference'],
  generic: ['model', 'prompt', 'image', 'duration', 'width', 'height', 'n', 'fps', 'seed'],
  vendork: [
    ...['model', 'model_name', 'prompt', 'image', 'duration', 'width', 'height', 'n', 'fps', 'seed'],
    'external_task_id',
  ],
  vendorj: ['req_key', 'prompt', 'binary_data_base64', 'image_urls', 'frames', 'seed', 'aspect_ratio'],
};
const sharedAnywhere = ['negative_prompt', 'image_tail', 'aspect_ratio', 'cfg_scale', 'mode'];
/** The same, for those that are also read in `metadata`. */
const anywhere: Readonly<Record<VideoFormat, readonly string[]>> = {
  compat: ['seed', 'negative_prompt', 'aspect_ratio'],
  generic: sharedAnywhere,
  vendork: sharedAnywhere,
  vendorj: [],
};

/**
 * Paths of what a request of another format loses on its way to an upstream of this format: the hints that it lacks, and
 * the members that are not read.
 */
export function leftOutMembers(
  request: VideoRequest,
  to: VideoFormat,
  lacks: readonly VideoHint[],
): string[] {
  const { format, body } = request;
  if (format === to) return [];
  const hints = { fps: request.fps, seed: request.seed, mode: request.mode, cfg_scale: request.cfgScale };
  const paths = lacks.flatMap((name) => (hints[name] === null ? [] : [pathOfMember(body, [name])]));
  const isSize = format === 'compat' && body.size === request.aspectRatio;
  if (request.aspectRatio !== null && !isRatioSent(request, to))
    paths.push(isSize ? 'size' : pathOfMember(body, ['aspect_ratio']));
  const isRead = (name: string, value: unknown) =>
    (anywhere[format].includes(name) && isReadable(request, name, value)) ||
    (formatsOfOwn.has(format) && isOwnTaken(name, value, to));
  for (const [name, value] of Object.entries(body)) {
    if (!hasValue(value) || topLevel[format].includes(name) || isRead(name, value)) continue;
    if (name !== 'metadata' || !isObject(value)) paths.push(name);
    else
      for (const [inner, held] of Object.entries(value))
        if (hasValue(held) && !isRead(inner, held)) paths.push(`metadata.${inner}`);
  }
  return paths;
}

/** Whether a member that is read anywhere has been read: it may be of another type, or another one takes precedence. */
function isReadable({ seed, aspectRatio }: VideoRequest, name: string, value: unknown): boolean {
  if (name === 'seed') return seed !== null;
  if (name === 'aspect_ratio') return value === aspectRatio;
  return typeof value === (name === 'cfg_scale' ? 'number' : 'string');
}

/** A size takes precedence over a ratio, and so does an image for vendork. */
function isRatioSent({ width, operation }: VideoRequest, to: VideoFormat): boolean {
  return width === null && !(to === 'vendork' && operation === 'image');
}

function isOwnTaken(name: string, value: unknown, to: VideoFormat): boolean {
  const isContent = [...ownContent.vendork, ...ownContent.vendorj].some((own) => own === name);
  return takenNames(to).includes(name) || (isContent && isSilent(value));
}

/** Whether a part of a compat form has a name of the image. */
export function isReference(name: string): boolean {
  return name === 'input_reference' || name === 'input_reference[]';
}
