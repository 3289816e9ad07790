import {
  marksOf,
  reportedMetering,
  type StreamEnding,
  type StreamStart,
} from '../../conversation/stream-rules.js';
import type { MadeMedia } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, parseObject, textOrNull } from '../../wire/json.js';
import { lastWordOf, needleOf } from '../../wire/json-skip.js';
import { firstEventEnd, lastEvents, parseEvent } from '../../wire/sse.js';
import { alwaysEffects } from '../effects.js';
import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { brokenEvent, errorMessageOf, foreignEvent, upstreamError } from '../error-formats/upstream-error.js';
import { imagesUsage } from './answer-decode.js';
import { ImageCounter } from './made.js';

/** An event may contain an image of megabytes. This many of its first bytes identify it. */
const headBytes = 512;
const ownType = /^image_(?:generation|edit)\./;
/** Beginnings of the protocol's events, by name or by data. */
const ownHead = /^(?:event: ?|data: ?\{\s*"type"\s*:\s*")image_(?:generation|edit)\./;
/** Members that only a partial image has after its bytes. A string cannot contain the quotes. */
const partialKey = /"partial_image_index"|"image_(?:generation|edit)\.partial_image"/;

/** What an event says about the state of the stream. */
type Word = 'complete' | 'incomplete' | 'nothing' | GatewayError;

/** See `StreamRules.marks`. Includes those of an image in a whole answer. */
const marks = marksOf('"image_', '"b64_json"', '"url"');

/** Judges the first events of a stream of images; see `StreamRules.judgeStart`. */
function judgeStart(run: Buffer): StreamStart {
  for (let start = 0; start < run.length; ) {
    if (ownHead.test(headOf(run, start))) return 'meaningful';
    const next = firstEventEnd(run, start, run.length);
    const end = next === -1 ? run.length : next;
    const { event, data } = parseEvent(run.toString('utf8', start, end));
    // An event that is too large to be held arrives in parts. Its type is known at its end.
    if (next === -1 && data?.startsWith('{') && parseObject(data) === null) return 'meaningful';
    const judged = data === null ? 'silence' : judgeEvent(event, data);
    if (judged !== 'silence') return judged;
    start = end;
  }
  return 'silence';
}

function judgeEvent(event: string | null, data: string): StreamStart {
  if (data.trim() === '[DONE]') return 'silence';
  const body = parseObject(data);
  if (body === null) return brokenEvent('images');
  const type = textOrNull(body.type) ?? event;
  if (type !== null && ownType.test(type)) return 'meaningful';
  if (type === 'keepalive' || type === 'ping') return 'silence';
  if (type === 'error' || isObject(body.error) || textOrNull(body.error)) return failureOf(body);
  return foreignEvent('images', type);
}

/** The failure is in `error`, or it is the event itself. */
function failureOf(body: JsonObject): GatewayError {
  return (
    upstreamError(body.error) ??
    upstreamError(body) ??
    new GatewayError('upstream_error', errorMessageOf(null))
  );
}

/** Judges an ended stream of images by its last bytes; see `StreamRules.judgeEnd`. */
function judgeEnd(tail: Buffer): StreamEnding {
  const usage = imagesUsage(tail);
  for (const { start, end } of lastEvents(tail)) {
    const word = wordOf(tail.toString('utf8', start, end), start === 0);
    if (word instanceof GatewayError) return { state: 'failed', usage, error: word };
    if (word !== 'nothing') return { state: word, usage, error: null };
  }
  return { state: 'incomplete', usage, error: null };
}

/** @param mayBeCut whether the event may have begun before the text */
function wordOf(text: string, mayBeCut: boolean): Word {
  const { event, data } = parseEvent(text);
  const body = parseObject(data ?? '');
  if (body === null) {
    if (mayBeCut && isRemains(text)) return partialKey.test(text) ? 'incomplete' : 'complete';
    return data === null || data === '' || data.trim() === '[DONE]' ? 'nothing' : 'incomplete';
  }
  const type = textOrNull(body.type) ?? event ?? '';
  if (type === 'error' || isObject(body.error) || textOrNull(body.error)) return failureOf(body);
  if (!ownType.test(type)) return 'nothing';
  return type.endsWith('.completed') ? 'complete' : 'incomplete';
}

/**
 * Returns whether a text is the end of an event whose beginning, with its name, is missing: the end of a JSON object.
 * An event that broke off within its image has no such end.
 */
function isRemains(text: string): boolean {
  return text.trimEnd().endsWith('}') && !/^(?:event|data|id|retry)?:/.test(text);
}

function headOf(run: Buffer, start: number): string {
  return run.toString('latin1', start, Math.min(run.length, start + headBytes)).trimStart();
}

const sizeKey = needleOf('"size"');
const qualityKey = needleOf('"quality"');

/** Reads size and quality of the images, which follow them in an answer; see `StreamRules.madeOf`. */
function madeOf(end: Buffer): MadeMedia {
  return { size: lastWordOf(end, sizeKey), quality: lastWordOf(end, qualityKey), resolution: null };
}

const images: Omit<Endpoint, 'upstreamPath'> = {
  ...plainEndpoint,
  protocol: 'images',
  marks,
  judgeStart,
  judgeEnd,
  usageOf: imagesUsage,
  madeOf,
  countUnits: () => new ImageCounter(),
  metering: { ...reportedMetering, unreported: 'image' },
  hasEffects: alwaysEffects,
};

/** `POST /v1/images/generations` */
export const imageGenerations: Endpoint = { ...images, upstreamPath: () => '/images/generations' };

/** `POST /v1/images/edits`. In a form, `stream` may follow the images. */
export const imageEdits: Endpoint = { ...images, upstreamPath: () => '/images/edits', streamsUnasked: true };
