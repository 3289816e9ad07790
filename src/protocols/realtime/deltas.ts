import { isObject, type JsonObject, numberOrNull, parseObject } from '../../wire/json.js';
import { afterColon, endOfString } from '../../wire/json-skip.js';
import { rawTextWeight } from '../../wire/text-weight.js';

/*
 * What a response has made by the deltas that have passed, for one whose `response.done` never comes
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/response). Sound is base64 of one channel: of
 * 16 bits a sample for PCM, of 8 bits and 8 kHz for G.711.
 */

const delta = Buffer.from('"delta"');
const quote = 0x22;
const g711BytesPerSecond = 8000;
const bytesOfSample = 2;
const usualRate = 24_000;
/** An upstream that names another rate is not believed: the seconds would be as long or short as it likes. */
const lowestRate = 8000;
const highestRate = 48_000;
/** An event of a response that has only begun is far shorter. */
const longestBegun = 64 * 1024;
/** A longer text is not looked at letter by letter. */
const longestRead = 64 * 1024;

/** What the sound of responses is taken for where nothing is known of its format. */
export const usualBytesPerSecond = bytesOfSample * usualRate;

/** @param created the event with which a response begins, which names its format @returns bytes of a second of sound */
export function audioBytesPerSecond(created: Buffer): number {
  const event = created.length > longestBegun ? null : parseObject(created.toString('utf8'));
  const response = memberOf(event, 'response');
  const format = memberOf(memberOf(memberOf(response, 'audio'), 'output'), 'format');
  switch (format?.type ?? response?.output_audio_format) {
    case 'audio/pcmu':
    case 'audio/pcma':
    case 'g711_ulaw':
    case 'g711_alaw':
      return g711BytesPerSecond;
    default: {
      const rate = numberOrNull(format?.rate) ?? usualRate;
      return bytesOfSample * (rate >= lowestRate && rate <= highestRate ? rate : usualRate);
    }
  }
}

function memberOf(object: JsonObject | null, name: string): JsonObject | null {
  const member = object?.[name];
  return isObject(member) ? member : null;
}

/** @returns bytes of sound in an event's `delta`; 0 where it has none */
export function audioBytesOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : event.indexOf(quote, start);
  return end === -1 ? 0 : Math.floor(((end - start) * 3) / 4);
}

/** @returns the `textWeight` of an event's `delta`; 0 where it has none */
export function textWeightOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : endOfString(event, start);
  if (end === -1) return 0;
  return end - start > longestRead ? end - start : rawTextWeight(event.toString('latin1', start, end));
}

/** Offset of the first byte of a delta, behind its quote, or -1 where it is no string. */
function deltaStart(event: Buffer): number {
  const at = event.indexOf(delta);
  const start = at === -1 ? -1 : afterColon(event, at + delta.length - 1);
  return start !== -1 && event[start] === quote ? start + 1 : -1;
}
