import { GatewayError } from '../errors.js';
import { textOf } from '../wire/json.js';
import { membersNamed, pathOfMember } from './request.js';
import type { VideoFormat, VideoRequest } from './task.js';
import { unsupportedMember } from './unsupported.js';

/** A size in pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

const sizeText = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/;
const ratioText = /^([1-9]\d{0,3}):([1-9]\d{0,3})$/;

/** The aspect ratios that vendors know. */
const ratios = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'];
/** How far a size may be from such a ratio: vendors count 1792x1024 as 16:9. */
const tolerance = 0.04;
/** Pixels of the shorter side if only the ratio is given. */
const shortSide = 720;

/** Parses a size such as `1280x720`; null for anything else. */
export function parseSize(text: string): Size | null {
  const [, width, height] = sizeText.exec(text) ?? [];
  return width === undefined || height === undefined
    ? null
    : { width: Number(width), height: Number(height) };
}

/** Whether a text is an aspect ratio such as `16:9`. */
export function isRatio(text: string): boolean {
  return ratioText.test(text);
}

/**
 * The aspect ratio of the video, for formats without sizes; null if the client leaves it open.
 * @throws {GatewayError} of status 400 for a width without a height, or the reverse
 */
export function aspectRatioFor(request: VideoRequest): string | null {
  const given = givenSize(request);
  return given === null ? request.aspectRatio : ratioOf(given);
}

/**
 * The size of the video, for formats without aspect ratios; null if the client leaves it open.
 * @param to the format of the upstream
 * @throws {GatewayError} of status 400 for an invalid aspect ratio, and for a width without a height or the reverse
 */
export function sizeFor(request: VideoRequest, to: VideoFormat): Size | null {
  const given = givenSize(request);
  if (given !== null || request.aspectRatio === null) return given;
  const [, across, down] = ratioText.exec(request.aspectRatio) ?? [];
  if (across === undefined || down === undefined)
    throw unsupportedMember(
      pathOfMember(request.body, ['aspect_ratio']),
      to,
      'that is no ratio such as 16:9',
    );
  const ratio = Number(across) / Number(down);
  return ratio >= 1
    ? { width: even(shortSide * ratio), height: shortSide }
    : { width: shortSide, height: even(shortSide / ratio) };
}

function givenSize({ width, height, body }: VideoRequest): Size | null {
  if (width === null && height === null) return null;
  if (width !== null && height !== null) return { width, height };
  const [given, missing] = width === null ? (['height', 'width'] as const) : (['width', 'height'] as const);
  const at = pathOfMember(body, [missing]);
  throw new GatewayError('missing_parameter', `Missing required parameter '${at}': '${given}' needs it.`, {
    param: at,
  });
}

function ratioOf({ width, height }: Size): string {
  const ratio = width / height;
  let nearest = '';
  let least = tolerance;
  for (const name of ratios) {
    const [across = 1, down = 1] = name.split(':').map(Number);
    const distance = Math.abs(Math.log((ratio * down) / across));
    if (distance < least) {
      nearest = name;
      least = distance;
    }
  }
  const divisor = greatestCommonDivisor(width, height);
  return nearest === '' ? `${width / divisor}:${height / divisor}` : nearest;
}

function greatestCommonDivisor(one: number, other: number): number {
  let [larger, smaller] = [one, other];
  while (smaller > 0) [larger, smaller] = [smaller, larger % smaller];
  return larger;
}

/** Rounds to an even number of pixels, as codecs require. */
function even(pixels: number): number {
  return Math.round(pixels / 2) * 2;
}

/** A size by name: `720p` or `4k`. */
const word = /^(?:\d{3,4}p|\dk)$/;
/** Some vendors write `1280*720`. */
const times = /[*\u00d7]/;
const longest = 64;
const sizeNames: ReadonlySet<string> = new Set(['resolution', 'size']);

/**
 * The resolution by which a video is priced, besides its length: the client's `resolution` in lower case or a size such
 * as `720p`, else the shorter side of the size in that form, else the mode (vendork's `std` or `pro`).
 * @returns null if the client names none of them, or two that differ, since the upstream may use either
 */
export function resolutionOf(
  request: Pick<VideoRequest, 'body' | 'form' | 'width' | 'height' | 'mode'>,
): string | null {
  const { width, height, mode } = request;
  const named = new Set<string>();
  const sides = new Set<string>();
  if (width !== null && height !== null) sides.add(shorterSide({ width, height }));
  for (const { name, value } of membersNamed(request, sizeNames)) {
    const text = textOf(value).toLowerCase();
    const size = name === 'size' ? parseSize(text.replace(times, 'x')) : null;
    if (size !== null) sides.add(shorterSide(size));
    else if (name === 'resolution' ? text !== '' && text.length <= longest : word.test(text)) named.add(text);
  }
  const candidates = named.size > 0 ? named : sides;
  return candidates.size === 0 ? mode : candidates.size === 1 ? ([...candidates][0] ?? null) : null;
}

/**
 * The same of the request that an upstream gets: translated to another format, it says only what that format can.
 * @param to the format of the upstream, which can express the request
 */
export function resolutionAt(request: VideoRequest, to: VideoFormat): string | null {
  if (request.format === to) return resolutionOf(request);
  const size = to === 'compat' || to === 'generic' ? sizeFor(request, to) : null;
  if (size !== null) return shorterSide(size);
  return to === 'vendork' || to === 'generic' ? request.mode : null;
}

/** A size by its name in prices, such as `720p`. */
export function shorterSide({ width, height }: Size): string {
  return `${Math.min(width, height)}p`;
}
