import type { OwnSecrets } from '../config/types.js';
import type { StreamVerdict } from '../conversation/stream-rules.js';
import { GatewayError } from '../errors.js';
import { encodedKeyError } from '../protocols/error-formats/own-secrets.js';
import { vendorAccountErrorOf } from '../protocols/error-formats/vendor-account.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import { Beginning, beginningBytes, Gather } from '../stream/gather.js';
import type { ResponseHead } from '../upstream/client.js';
import { parseJson, parseObject } from '../wire/json.js';
import { textStart } from '../wire/json-skip.js';
import { looksLikeText } from '../wire/plain-text.js';
import { EventRuns, parseEvent } from '../wire/sse.js';

/** Error answers are taken whole up to this size: only then is it known that they are JSON. */
const wholeErrorBytes = 1024 * 1024;

/** An answer whose head is there. */
export interface Answering {
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
}

/** A stream was asked for, and its first bytes have to tell whether it is one: its head does not. */
export interface Undecided extends Answering {
  readonly name: 'undecided';
  readonly gathered: Gather;
}

/** It is collected, and leaves at once. */
export interface Whole extends Answering {
  readonly name: 'whole';
  readonly gathered: Gather;
}

/** It is passed on as it comes. */
export interface Bytes extends Answering {
  readonly name: 'opening' | 'bytes';
  readonly beginning: Beginning;
}

/** It is passed on in whole events, or, before it is known whether it will be, collected and judged in them. */
export class Events implements Answering {
  readonly name = 'events';
  readonly transform: AnswerTransform;
  readonly head: ResponseHead;
  readonly runs: EventRuns;

  constructor(transform: AnswerTransform, head: ResponseHead) {
    this.transform = transform;
    this.head = head;
    this.runs = new EventRuns(transform.eventBytes);
  }

  /**
   * Judges the beginning of a stream of which nothing has passed. Part of an event cannot be judged; one so large is taken
   * for what was asked for.
   */
  judge(run: Buffer): StreamVerdict {
    return this.runs.overlong ? 'meaningful' : this.transform.judge(run);
  }

  /** What follows those that were whole, at the stream's end: see `lastEvent`. */
  last(): Buffer | null {
    return lastEvent(this.runs);
  }
}

/** All of it is there, and its end waits until what it promises is kept. */
interface Keeping {
  readonly name: 'keeping';
  readonly isStream: boolean;
  /** The upstream's own stream, behind whose end there may come more; else null. */
  readonly behind: Events | null;
}

/**
 * How far an answer is. From `waiting` for its head it comes, some by way of `undecided`, to one of three: `whole`,
 * `opening` and then `bytes`, or `events`. After that it may be `keeping` what its end promises, or `sent` (whole, and the
 * client has not taken all of it), and at last it is `over`.
 */
export type Phase =
  | { readonly name: 'waiting' }
  | Undecided
  | Whole
  | Bytes
  | Events
  | Keeping
  | { readonly name: 'sent'; readonly head: ResponseHead }
  | { readonly name: 'over' };

export const waiting: Phase = { name: 'waiting' };
export const over: Phase = { name: 'over' };

/** Whether keep-alives may be sent: they belong between the events of a stream alone. */
export function mayKeepAlive(phase: Phase, transform: AnswerTransform | null): boolean {
  if (phase.name === 'waiting') return transform?.streamsUnasked !== true;
  return phase.name === 'events' ? !phase.runs.overlong : phase.name === 'keeping' && phase.isStream;
}

/** An answer that has not shown by so many bytes what it is, is neither a stream nor JSON. */
const decidingBytes = 4096;

/** How an answer is taken that is of use, by its head. */
export function takenAs(
  transform: AnswerTransform,
  head: ResponseHead,
  { streamed, secrets }: { readonly streamed: boolean; readonly secrets: OwnSecrets },
): Phase {
  if (head.status >= 400) return { name: 'whole', transform, head, gathered: new Gather(wholeErrorBytes) };
  if (!streamed) return unstreamed(transform, head, secrets);
  if (isEventStream(head)) return new Events(transform, head);
  return { name: 'undecided', transform, head, gathered: new Gather(decidingBytes) };
}

function unstreamed(transform: AnswerTransform, head: ResponseHead, secrets: OwnSecrets): Phase {
  if (leavesWhole(head, transform))
    return { name: 'whole', transform, head, gathered: new Gather(transform.wholeBytes) };
  return { name: 'opening', transform, head, beginning: beginningOf(head, secrets) };
}

/**
 * Tells by its first bytes what an answer is that should be a stream and is not called one.
 * @param mayBeJson it may be handed on as JSON
 * @returns how it is taken from now on and what of it has come, null while more is needed; the phase is null for an
 * answer of no use
 */
export function decide(
  { transform, head, gathered }: Undecided,
  chunk: Buffer,
  { isWhole, mayBeJson, secrets }: { isWhole: boolean; mayBeJson: boolean; secrets: OwnSecrets },
): { readonly phase: Phase | null; readonly first: Buffer } | null {
  const isHeld = gathered.add(chunk, -1);
  const first = isHeld ? gathered.take() : chunk;
  const kind = isHeld ? kindOfAnswer(first, isWhole) : 'other';
  if (kind === 'events') return { phase: new Events(transform, head), first };
  if (kind === 'json' && mayBeJson) return { phase: unstreamed(transform, head, secrets), first };
  if (kind !== null) return { phase: null, first };
  gathered.add(first, -1);
  return null;
}

/** No error is larger: what is, is not looked into. */
const longestError = 64 * 1024;

/** Why an answer is of no use for a call, or null. */
export function answerError(head: ResponseHead, streamed: boolean): GatewayError | null {
  if (head.status >= 300 && head.status < 400)
    return new GatewayError('upstream_error', 'The upstream answered with a redirect.');
  // What the client could decode was decoded there, and its header is gone.
  const coding = head.contentCoding;
  if (coding !== null && coding !== 'identity')
    return new GatewayError('upstream_error', 'The upstream compressed its answer in an unknown way.');
  if (head.status >= 400 || streamed || !isEventStream(head)) return null;
  return new GatewayError(
    'unsupported_stream_event',
    'The upstream answered with a stream that was not asked for.',
  );
}

/** What is said of an answer that should be a stream and is neither that nor to be handed on. */
export function noStream(): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    'A stream was asked for, and the upstream answered with something else.',
  );
}

/** How the lines of an event stream begin (HTML, section 9.2.6), a comment aside. */
const fieldStarts = ['data:', 'event:', 'id:', 'retry:'];
const longestStart = 6;

/**
 * What an answer is by its first bytes: servers leave the type of a stream out, and answer a question for a stream with
 * JSON.
 * @param isWhole nothing follows them
 * @returns null where more of them are needed
 */
function kindOfAnswer(first: Buffer, isWhole: boolean): 'events' | 'json' | 'other' | null {
  const at = textStart(first);
  const start = first.toString('latin1', at, at + longestStart);
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith(':') || fieldStarts.some((field) => start.startsWith(field))) return 'events';
  const mayFollow = fieldStarts.some((field) => field.startsWith(start));
  return mayFollow && !isWhole ? null : 'other';
}

/** Whether a good answer is kept until all of it is there; else it leaves piece by piece. */
function leavesWhole(head: ResponseHead, transform: AnswerTransform): boolean {
  return head.contentLength <= transform.wholeBytes && !(transform.divisible && isMedia(head));
}

/**
 * Why an answer of a good status is none of its endpoint, or null. What JSON is called matters little: some servers give
 * it another type.
 * @param first its first bytes, or all of it where `isWhole`
 * @param isJson else it may be any text or a sound, but no page
 */
function contentError(
  head: ResponseHead,
  first: Buffer,
  { isWhole, isJson }: { readonly isWhole: boolean; readonly isJson: boolean },
): GatewayError | null {
  const { contentType } = head;
  const begins = beginsAsJson(first, !isWhole);
  const isCalledJson = contentType === 'application/json' || startsAsJson(contentType);
  const isFit = isJson
    ? begins && (isCalledJson || !isWhole || isAnyJson(first))
    : begins || !isPage(contentType, first);
  if (isFit && !isJson && begins && isError(first))
    return new GatewayError('upstream_error', 'The upstream answered with an error under a good status.');
  if (isFit) return null;
  return new GatewayError('upstream_error', 'The upstream answered with something other than JSON.');
}

/** What may be known of an answer that is passed on as it comes, before it is. */
export function beginningOf(head: ResponseHead, secrets: OwnSecrets): Beginning {
  return new Beginning(secrets, isMedia(head) ? beginningBytes : Number.POSITIVE_INFINITY);
}

/**
 * What the beginning of an answer that is no JSON says of the gateway's account, or would tell of it; null for what may
 * pass.
 * @param isMedium it is called an image or a sound: a text in its place is an error, whose words count
 */
export function beginningError(first: Buffer, isMedium: boolean, secrets: OwnSecrets): GatewayError | null {
  const failure = encodedKeyError(first, secrets);
  if (failure !== null || !isMedium || !looksLikeText(first)) return failure;
  const text = first.toString('utf8', textStart(first), longestError);
  return vendorAccountErrorOf(text, 'error', secrets);
}

/**
 * Why an answer of a good status cannot be passed on, or null.
 * @param first its first bytes, or all of it where `isWhole`
 */
export function unfitError(
  head: ResponseHead,
  first: Buffer,
  { isWhole, answersJson, secrets }: { isWhole: boolean; answersJson: boolean; secrets: OwnSecrets },
): GatewayError | null {
  const isJson = answersJson && !isMedia(head);
  const failure = isJson ? null : beginningError(first, isMedia(head), secrets);
  return failure ?? contentError(head, first, { isWhole, isJson });
}

function startsAsJson(type: string | null): boolean {
  return type !== null && /^[^;]*json/i.test(type);
}

/** @param mayFollow it may begin behind these bytes */
function beginsAsJson(bytes: Buffer, mayFollow: boolean): boolean {
  const at = textStart(bytes);
  return at >= bytes.length ? mayFollow && bytes.length > 0 : bytes[at] === 0x7b || bytes[at] === 0x5b;
}

function isAnyJson(bytes: Buffer): boolean {
  return parseJson(bytes.toString('utf8')) !== undefined;
}

/** True for an object that is whole and has nothing but an error to tell. */
function isError(bytes: Buffer): boolean {
  if (bytes.length > longestError) return false;
  const parsed = parseObject(bytes.toString('utf8', textStart(bytes)));
  return Boolean(parsed?.error) && !('text' in (parsed ?? {}));
}

function isPage(type: string | null, first: Buffer): boolean {
  const isCalledSo = type !== null && /^(?:text\/html|application\/xhtml)/i.test(type);
  return (
    isCalledSo ||
    /^(?:\xef\xbb\xbf)?\s*<(?:!--|(?:!doctype\s+html|html)\b)/i.test(first.toString('latin1', 0, 256))
  );
}

/** True for an answer that is neither text nor JSON: there is nothing in it to read or to change. */
export function isMedia(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return /^(?:audio|image|video)\/|^application\/octet-stream/i.test(type);
}

/** True for an answer that says it is an event stream. */
export function isEventStream(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return type.toLowerCase().startsWith('text/event-stream');
}

/** Some upstreams leave out the blank line behind their last event; what was cut short is no event. */
function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseEvent(rest.toString('utf8'));
  if (data === null || data === '[DONE]') return data !== null;
  return parseJson(data) !== undefined;
}

/** The event that a stream ends with whose upstream leaves out the blank line behind it, or null. What is none is dropped. */
export function lastEvent(runs: EventRuns): Buffer | null {
  const rest = runs.rest();
  return rest !== null && isWholeEvent(rest) ? Buffer.concat([rest, Buffer.from('\n\n')]) : null;
}

/** Why a stream is of no use that brings no event. */
export function endedUnbegun(): GatewayError {
  return new GatewayError('upstream_error', "The upstream's stream ended before its first event.", {
    cause: 'ended before its first event',
  });
}

/** What is said of more than the gateway takes. */
export function tooLarge(message: string): GatewayError {
  return new GatewayError('upstream_error', message, { tooLarge: true });
}
