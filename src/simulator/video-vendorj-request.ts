import { isAddress, isBase64 } from './image-reference.js';
import type { JsonObject } from './json.js';
import { VendorError } from './media-route.js';
import { promptWishes } from './prompt-wishes.js';
import { vendorNumber, vendorText, vendorWord } from './vendor-values.js';
import type { VideoWish } from './video-task.js';

/** The vendor's number for a request that it cannot take. */
export const wrongRequest = 50400;

const mostCharacters = 4000;
const mostSeed = 2_147_483_647;
const fps = 24;
/** Frames are those of the seconds, and one. */
const frames = { 121: 5, 241: 10 } as const;
const shapes = {
  '16:9': [1280, 720],
  '4:3': [960, 720],
  '1:1': [720, 720],
  '3:4': [720, 960],
  '9:16': [720, 1280],
  '21:9': [1680, 720],
} as const;

/** The key of a request's model, which every action needs. */
export function readReqKey(body: JsonObject): string {
  const key = body.req_key;
  if (key === undefined || key === null || key === '') {
    throw refused('req_key is required');
  }
  if (key !== 'sim-video') {
    throw refused(`req_key ${JSON.stringify(key)} does not exist`);
  }
  return key;
}

/**
 * Reads and checks the body that makes a task.
 * @throws VendorError with what a caller did wrong.
 */
export function readVendorjWish(body: JsonObject): VideoWish {
  const model = readReqKey(body);
  const prompt = vendorText(body, 'prompt', mostCharacters, refused) ?? '';
  const images = [
    ...list(body, 'binary_data_base64', isBase64, 'base64 without a prefix such as data:image/png;base64,'),
    ...list(body, 'image_urls', isAddress, 'http(s) URLs'),
  ];
  if (prompt === '' && images.length === 0) {
    throw refused('prompt is required where no image is given');
  }
  const seed = vendorNumber(body, 'seed', { least: -1, most: mostSeed, whole: true }, refused);
  const shape = vendorWord(body, 'aspect_ratio', ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'], refused);
  const [width, height] = shapes[shape];
  const wanted = body.frames ?? 121;
  if (wanted !== 121 && wanted !== 241) {
    throw refused('frames must be 121 or 241');
  }
  return {
    format: 'vendorj',
    operation: images.length === 0 ? 'text' : 'image',
    model,
    wishes: promptWishes(prompt),
    width,
    height,
    seconds: frames[wanted],
    fps,
    seed: seed === -1 ? null : seed,
    images,
    externalId: null,
  };
}

function list(
  body: JsonObject,
  name: string,
  holds: (text: string) => boolean,
  what: string,
): readonly string[] {
  const value: unknown = body[name] ?? [];
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string' && holds(one))) {
    throw refused(`${name} must be an array of ${what}`);
  }
  return value;
}

function refused(message: string): VendorError {
  return new VendorError(400, wrongRequest, message);
}
