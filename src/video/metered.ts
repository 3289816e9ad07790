import { GatewayError } from '../errors.js';
import { countMembers } from '../wire/count-members.js';
import { isObject, parseObject } from '../wire/json.js';
import { foldName } from '../wire/member-guard.js';
import { wrongValue } from '../wire/reading.js';
import { modelMembers, numberIn } from './members.js';
import type { VideoFormat, VideoRequest } from './task.js';

/*
 * Formats of videos differ on the names of length and number, and servers that know several formats read all of their
 * names. What an upstream may take for either has to say what the gateway has read, since that is what is paid for.
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

/** The members that are read of each format: of the length, and of the number where it has one. */
const read: Readonly<Record<VideoFormat, { readonly length: string; readonly count: string | null }>> = {
  compat: { length: 'seconds', count: null },
  generic: { length: 'duration', count: 'n' },
  vendork: { length: 'duration', count: 'n' },
  vendorj: { length: 'frames', count: null },
};

/** Where formats have what vendors add, and what some servers lay over the rest. */
const holders: ReadonlySet<string> = new Set(['metadata', 'extra_body'].map(foldName));
const modelNames: ReadonlySet<string> = new Set(modelMembers.map(foldName));
/** One in another, and one more. */
const mostLevels = 4;
/** No server knows a longer name for any of these. */
const longestName = 256;
/** Some clients send `metadata` as a text that is JSON. */
const longestText = 16_384;

/**
 * Refuses a request in which some servers would find another model, another length, or more videos, than the gateway has
 * read.
 * @throws {GatewayError} of status 400, naming the member and the one to send in its place
 */
export function requireMetered(request: VideoRequest): void {
  const { body, form } = request;
  if (form === null) lookInto(request, body, [], false);
  for (const { name, data } of form ?? []) {
    // Forms have the members of objects as `metadata[n]`, or `metadata.n`.
    const path = name.slice(0, longestName).match(/[^[\].]+/g) ?? [];
    // A byte more than the longest can have: of three at most each character is made.
    lookAt(request, path, data.toString('utf8', 0, 3 * longestText + 1), false);
  }
}

/** @param isText it is passed on as the text that it came as, in which a name may come twice */
function lookInto(request: VideoRequest, object: object, path: readonly string[], isText: boolean): void {
  for (const [name, value] of Object.entries(object))
    if (name.length <= longestName) lookAt(request, [...path, name], value, isText);
}

/** @param path of the member, from the top of the body */
function lookAt(request: VideoRequest, path: readonly string[], value: unknown, isText: boolean): void {
  const inside = path.slice(0, -1);
  if (!inside.every((name) => holders.has(foldName(name)))) return;
  const folded = foldName(path.at(-1) ?? '');
  if (holders.has(folded)) {
    const object = isObject(value) ? value : objectOf(value, path);
    if (object !== null && path.length < mostLevels)
      lookInto(request, object, path, isText || object !== value);
    return;
  }
  if (inside.length > 0 && modelNames.has(folded)) throw otherModel(path.join('.'));
  const measure = measures.get(folded);
  if (measure === undefined || (!isText && (value === null || value === ''))) return;
  const { length, count } = read[request.format];
  const own = measure === 'count' ? count : length;
  // What is wrong with that itself its reader has said.
  if (inside.length === 0 && own !== null && foldName(own) === folded) return;
  const number = numberIn(value);
  if (isText || number === null || number !== meteredOf(request, measure))
    throw unmetered(path.join('.'), own);
}

/** @throws {GatewayError} of status 400 for a text that may be an object and cannot be looked into */
function objectOf(value: unknown, path: readonly string[]): object | null {
  if (typeof value !== 'string' || !value.trimStart().startsWith('{')) return null;
  // What is no JSON here, such as NaN, some parsers take.
  const object = value.length <= longestText ? parseObject(value) : null;
  if (object !== null) return object;
  throw wrongValue(
    path.join('.'),
    `an object, or the JSON text of one, of at most ${longestText} characters`,
  );
}

/** What is paid for; null where the request does not say it in this measure. */
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
