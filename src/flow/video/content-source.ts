import { statusError } from '../../attempts/told-error.js';
import type { Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import type { ResponseHead } from '../../upstream/types.js';
import { upstreamFormats } from '../../video/formats.js';
import type { VideoTask } from '../../video/task.js';
import type { VideoVariant } from '../../video/variants.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { type ByteRange, parseContentRange, type SatisfiedRange, satisfiedRange } from '../../wire/range.js';
import type { Call } from '../call.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { upstreamOf } from './answer.js';

/** Where a content is: at the upstream itself, or where it says. */
export type ContentSource =
  | {
      readonly kind: 'path';
      readonly upstream: Upstream;
      /** Under the upstream's base URL. */
      readonly path: string;
      /** The model's name there. */
      readonly model: string;
      readonly credential: string | null;
    }
  | {
      readonly kind: 'url';
      readonly upstream: Upstream;
      readonly url: string;
      /** Whose upstream may be asked for another URL. */
      readonly taskId: string;
    };

const nothing = Buffer.alloc(0);
/** Text begins within so many bytes. */
const startWithin = 256;
/** Fewer bytes may look like one by chance, whatever they are called. */
const leastText = 32;
/** What a login page comes as, an object store's error, the answer of an API that says 200 to everything. */
const textType = /^(?:text\/|application\/(?:json|xml|xhtml|problem))/i;
/** Types that a client is told: none in which a browser would find a script. */
export const mediaType = /^(?:video\/[\w.+-]+|image\/(?:png|jpeg|gif|webp|avif))$/i;
const pageStart = /^(?:\xef\xbb\xbf)?\s*[<{[]/;

/**
 * What comes with a good status may be a page or an error, as its first bytes tell.
 * @param first bytes of the answer, or all of them
 * @param isFromStart they are the first of the video, too
 * @returns null for what may be a video
 */
export function otherThanVideo(
  { contentType }: ResponseHead,
  first: Buffer,
  isFromStart: boolean,
): GatewayError | null {
  const isPage = isFromStart && pageStart.test(first.toString('latin1', 0, startWithin));
  const isText = first.length >= leastText && looksLikeText(first) && textType.test(contentType ?? '');
  if (!isPage && !isText) return null;
  return new GatewayError('upstream_error', 'The upstream answered with something other than a video.');
}

/** Why a file's answer cannot be handed on, or null. */
export function problemOf(head: ResponseHead, range: ByteRange | null): GatewayError | null {
  const { status } = head;
  if (status === 404 || status === 410)
    return new GatewayError('not_found', 'The upstream no longer has this video.');
  if (status === 429 || status === 503) return statusError(head, nothing);
  if (status !== 200 && status !== 206)
    return new GatewayError('upstream_error', `The upstream answered with status ${status} for the video.`);
  const coding = head.get('content-encoding');
  if (coding !== null && coding.toLowerCase() !== 'identity')
    return new GatewayError('upstream_error', 'The upstream used an unknown content-encoding for the video.');
  if (status === 200) return null;
  const part = parseContentRange(head.get('content-range'));
  if (range === null || part === null || !isAsked(range, part))
    return new GatewayError('upstream_error', 'The upstream sent a part that was not requested.');
  return isWhole(head, part)
    ? null
    : new GatewayError('upstream_error', 'The upstream sent a different part than it announced.');
}

/** A part may end early or late, but never begin elsewhere. Where the last bytes begin, only the length tells. */
function isAsked(
  range: ByteRange,
  { first, last, length }: SatisfiedRange & { readonly length: number },
): boolean {
  if (!('suffix' in range)) return first === range.first;
  const satisfied = length === -1 ? null : satisfiedRange(range, length);
  return satisfied === null ? length === -1 : first === satisfied.first && last === satisfied.last;
}

/**
 * A part has the length of its range. One without a length is chunked: where the length is gone, the part was of the
 * video's compressed form.
 */
function isWhole(head: ResponseHead, { first, last }: SatisfiedRange): boolean {
  const { contentLength } = head;
  if (contentLength === -1) return head.get('transfer-encoding') !== null;
  return contentLength === last - first + 1;
}

/** @throws {GatewayError} `not_found` where there is nothing to fetch */
export function sourceOf(call: Pick<Call, 'running'>, task: VideoTask, variant: VideoVariant): ContentSource {
  const upstream = upstreamOf(call, task);
  if (upstream === null)
    throw new GatewayError('not_found', 'The upstream that made this video is no longer configured.');
  const path = upstreamFormats[task.upstream.format].content(task, variant.name);
  if (path !== null) {
    const { model, credential } = task.upstream;
    return { kind: 'path', upstream, path, model, credential };
  }
  const url = variant.name === 'video' ? task.result?.url : null;
  if (url === null || url === undefined) {
    throw new GatewayError('not_found', `The upstream has no ${variant.name} of this video.`, {
      param: variant.name === 'video' ? null : 'variant',
    });
  }
  return { kind: 'url', upstream, url, taskId: task.id };
}

/**
 * Refuses a call that asks for a range of which the video has nothing.
 * @param contentRange that says how long it is, or null
 * @param more header lines of the video, each with CRLF before it
 */
export function refuseRange(services: Services, call: Call, contentRange: string | null, more: string): void {
  const isTold = contentRange !== null && /^bytes \*\/\d+$/.test(contentRange);
  const length = isTold ? `\r\ncontent-range: ${contentRange}` : '';
  refuse(services, call, new GatewayError('range_not_satisfiable'), null, length + more);
}
