import type { ImageSource } from '../../media/image.js';
import type { JsonObject } from '../../wire/json.js';
import { missingValue } from '../../wire/reading.js';
import { placeOf } from '../members.js';
import type { VideoCall, VideoFormat, VideoRequest } from '../task.js';
import { unsayable } from '../unsayable.js';

/** A call that only asks. */
export function getCall(path: string): VideoCall {
  return { method: 'GET', path, contentType: null, body: [] };
}

/** A call with a JSON body. Members that are undefined are left out. */
export function jsonCall(path: string, body: JsonObject): VideoCall {
  return { method: 'POST', path, contentType: 'application/json', body: [Buffer.from(JSON.stringify(body))] };
}

/** The image as a URL or as base64 alone, whichever it came as; undefined where there is none. */
export function imageText(image: ImageSource | null): string | undefined {
  if (image === null) return undefined;
  return image.kind === 'url' ? image.url : image.bytes.toString('base64');
}

/**
 * The prompt where the upstream cannot do without.
 * @throws {GatewayError} of status 400 where the client gave none
 */
export function promptFor({ prompt }: VideoRequest): string {
  if (prompt === null) throw missingValue('prompt', "a text, which this model's upstream needs");
  return prompt;
}

/**
 * Refuses several videos at once.
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function requireOne({ count, body }: VideoRequest, to: VideoFormat): void {
  if (count !== null && count > 1) throw unsayable(placeOf(body, ['n']), to, 'above 1');
}

/**
 * Refuses a prompt of what shall not be seen.
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function refuseNegative({ negativePrompt, body }: VideoRequest, to: VideoFormat): void {
  if (negativePrompt !== null) throw unsayable(placeOf(body, ['negative_prompt']), to);
}
