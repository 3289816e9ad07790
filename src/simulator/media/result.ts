import { createHash } from 'node:crypto';
import { laterFaults } from '../faults/directives.js';
import { RequestError } from '../http/request-error.js';
import { routes } from '../http/route.js';
import { generatedFile, type MediaFile, patternFile, serveFile } from './file.js';
import { mp4Video } from './mp4.js';
import { pngImage } from './png.js';
import { binaryFormat } from './route.js';

const checksumLength = 8;

/** The kind of a name; a name of one kind is invalid as another. */
type NameKind = 'media' | 'task';

/**
 * A name that encodes its object, so that nothing has to be stored: JSON in base64url (RFC 4648, section 5) and a
 * checksum.
 */
export function packName(kind: NameKind, value: unknown): string {
  const text = Buffer.from(JSON.stringify(value)).toString('base64url');
  return text + checksumOf(kind, text);
}

/** The JSON value in a name, or null if the name is not the simulator's or was changed. */
export function unpackName(kind: NameKind, name: string): unknown {
  const text = name.slice(0, -checksumLength);
  if (text === '' || name.slice(-checksumLength) !== checksumOf(kind, text)) {
    return null;
  }
  return JSON.parse(Buffer.from(text, 'base64url').toString());
}

function checksumOf(kind: NameKind, text: string): string {
  return createHash('sha256').update(kind).update('\0').update(text).digest('hex').slice(0, checksumLength);
}

/** Path of results that were returned as URLs. */
export const resultPath = '/__simulator/media/';

/** The parameters of an image. */
interface ImageResult {
  readonly width: number;
  readonly height: number;
  readonly seed: string;
}

/** The parameters of a video. */
export interface VideoResult extends ImageResult {
  readonly seconds: number;
  readonly fps: number;
  /** Size of a video of noise, or null for one that plays. */
  readonly bytes: number | null;
}

type Named =
  | readonly ['png', number, number, string, string]
  | readonly ['mp4', number, number, string, string, number, number, number | null];

/**
 * The URL of an image, which encodes the image's parameters.
 * @param faults faults of requests for it, in the form of the header `x-simulator-fault`
 */
export function imageUrl(origin: string, image: ImageResult, faults: string): string {
  const named: Named = ['png', image.width, image.height, image.seed, faults];
  return `${origin}${resultPath}${packName('media', named)}.png`;
}

/** The URL of a video, like that of an image. */
export function videoUrl(origin: string, video: VideoResult, faults: string): string {
  const { width, height, seed, seconds, fps, bytes } = video;
  const named: Named = ['mp4', width, height, seed, faults, seconds, fps, bytes];
  return `${origin}${resultPath}${packName('media', named)}.mp4`;
}

/** The file of a video. */
export function videoFile(video: VideoResult): MediaFile {
  const { width, height, seconds, fps, seed, bytes } = video;
  if (bytes !== null) {
    return patternFile(bytes, 'video/mp4');
  }
  const name = JSON.stringify(['mp4', width, height, seconds, fps, seed]);
  return generatedFile(name, 'video/mp4', () => mp4Video({ width, height, seconds, fps, seed }));
}

/** `GET` and `HEAD` of these URLs. */
export const resultRoutes = routes({
  methods: ['GET', 'HEAD'],
  path: /^\/__simulator\/media\//,
  answerFormat: () => binaryFormat,
  answer(asked) {
    const [, name = '', ending] = /^(.+)\.(\w+)$/.exec(asked.path.slice(resultPath.length)) ?? [];
    const named = unpackName('media', name) as Named | null;
    if (named === null || named[0] !== ending) {
      throw new RequestError(404, 'There is no such file.');
    }
    return serveFile(asked, fileOf(named), [...asked.directives, ...laterFaults(named[4], name)]);
  },
});

function fileOf(named: Named): MediaFile {
  const [kind, width, height, seed] = named;
  if (kind === 'mp4') {
    const [, , , , , seconds, fps, bytes] = named;
    return videoFile({ width, height, seed, seconds, fps, bytes });
  }
  const name = JSON.stringify([kind, width, height, seed]);
  return generatedFile(name, 'image/png', () => pngImage({ width, height, seed }));
}
