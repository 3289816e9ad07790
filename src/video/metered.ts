import { GatewayError } from '../errors.js';
import { countMembers, type HeldMember } from '../wire/count-members.js';
import { foldName } from '../wire/member-guard.js';
import { membersNamed, modelMembers, numberIn } from './members.js';
import type { VideoFormat, VideoRequest } from './task.js';

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
