import { GatewayError } from '../errors.js';
import { listOf } from '../wire/json.js';
import { type Member, memberOf, pathOfMember } from './request.js';
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

/** Members that affect the content of a video and exist only in the vendork format. */
const vendorkContent = ['camera_control', 'static_mask', 'dynamic_masks', 'sound'];
const silent: readonly unknown[] = ['off', false];

/** Those of these members that a request uses. */
export function vendorkMembers({ format, body }: VideoRequest): (Member & { readonly name: string })[] {
  if (format !== 'vendork' && format !== 'generic') return [];
  return vendorkContent.flatMap((name) => {
    const member = memberOf(body, name);
    return member === null || (name === 'sound' && silent.includes(member.value))
      ? []
      : [{ name, ...member }];
  });
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
  const callback = format === 'vendork' || format === 'generic' ? memberOf(body, 'callback_url') : null;
  if (callback !== null) throw unsupportedMember(callback.at, to);
}

/** Paths of the hints in a request that are left out for an upstream of this format. */
export function leftOutHints(request: VideoRequest, to: VideoFormat, lacks: readonly VideoHint[]): string[] {
  if (request.format === to) return [];
  const hints = { fps: request.fps, seed: request.seed, mode: request.mode, cfg_scale: request.cfgScale };
  return lacks.flatMap((name) => (hints[name] === null ? [] : [pathOfMember(request.body, [name])]));
}

/**
 * Refuses members that only the vendork format has.
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function refuseVendorkMembers(request: VideoRequest, to: VideoFormat): void {
  const [member] = vendorkMembers(request);
  if (member !== undefined) throw unsupportedMember(member.at, to);
}

/** Whether a part of a compat form has a name of the image. */
export function isReference(name: string): boolean {
  return name === 'input_reference' || name === 'input_reference[]';
}
