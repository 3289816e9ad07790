import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { encodedKeyError, vendorAccountErrorOf } from '../../protocols/error-formats/vendor-account.js';
import { isKnownImage } from '../../protocols/images/answer.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Beginning, beginningBytes, Gather } from '../../stream/gather.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson, parseObject } from '../../wire/json.js';
import { skipSpace, textStart } from '../../wire/json-skip.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { Events, type Phase, type Undecided } from './phase.js';

/* Classifies an upstream's answer by its head and its first bytes: how it is read, or why it is useless. */

/** Larger answers are not inspected for an error. */
const longestError = 64 * 1024;

const commentStart = '<!--';
const commentEnd = '-->';

/** Returns why an answer is useless for a call, or null. */
export function answerError(head: ResponseHead, streamed: boolean): GatewayError | null {
  if (head.status >= 300 && head.status < 400)
    return new GatewayError('upstream_error', 'The upstream answered with a redirect.');
  // An answer in a coding that the upstream client could decode was decoded there, and its header was removed.
  const coding = head.contentCoding;
  if (coding !== null && coding !== 'identity')
    return new GatewayError('upstream_error', 'The upstream used an unknown content-encoding.');
  if (head.status >= 400 || streamed || !isEventStream(head)) return null;
  return new GatewayError(
    'unsupported_stream_event',
    'The upstream returned a stream that was not requested.',
  );
}

/** Returns the error for an answer that should be a stream, is none and may not be relayed as it is. */
export function noStream(): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    'A stream was requested, and the upstream returned something else.',
  );
}

/**
 * Returns why an answer with a good status does not belong to its endpoint, or null. The content type of JSON matters
 * little, since some servers send another.
 * @param first its first bytes, or all of it if `isWhole`
 * @param isJson the endpoint answers with JSON; else any text or sound may pass, but no HTML page
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
    return new GatewayError('upstream_error', 'The upstream returned an error with a status of success.');
  if (isFit) return null;
  return new GatewayError('upstream_error', 'The upstream answered with something other than JSON.');
}

/**
 * Returns the error if the beginning of an answer that is not JSON is about the gateway's account or would reveal it; null
 * if the answer may pass.
 * @param isMedium its content type is an image or a sound: a text in its place is an error, whose words are read
 */
export function beginningError(first: Buffer, isMedium: boolean, secrets: OwnSecrets): GatewayError | null {
  const failure = encodedKeyError(first, secrets);
  if (failure !== null || !isMedium || !looksLikeText(first)) return failure;
  const text = first.toString('utf8', textStart(first), longestError);
  return vendorAccountErrorOf(text, 'error', secrets);
}

/**
 * Returns why an answer with a good status cannot be passed on, or null.
 * @param first its first bytes, or all of it if `isWhole`
 */
export function unusableError(
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

/** @param mayFollow more bytes may follow, so the JSON may begin after these */
function beginsAsJson(bytes: Buffer, mayFollow: boolean): boolean {
  const at = textStart(bytes);
  return at >= bytes.length ? mayFollow && bytes.length > 0 : bytes[at] === 0x7b || bytes[at] === 0x5b;
}

function isAnyJson(bytes: Buffer): boolean {
  return parseJson(bytes.toString('utf8')) !== undefined;
}

/** Returns true for a complete object that holds nothing but an error. */
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

/**
 * Returns true for an HTML page, or what is called JSON, in place of an image, whatever the bytes of one are called. SVG is text
 * as well, but neither of them.
 */
export function isNoImage(type: string | null, bytes: Buffer): boolean {
  if (isKnownImage(bytes)) return false;
  return (isPage(type, bytes) && !isSvg(bytes)) || startsAsJson(type);
}

/** Returns true for SVG after comments, with which an HTML page may begin as well. */
function isSvg(bytes: Buffer): boolean {
  let at = textStart(bytes);
  while (bytes.toString('latin1', at, at + commentStart.length) === commentStart) {
    const end = bytes.indexOf(commentEnd, at + commentStart.length);
    if (end === -1) return false;
    at = skipSpace(bytes, end + commentEnd.length);
  }
  return /^<(?:!doctype\s+)?svg\b/i.test(bytes.toString('latin1', at, at + 64));
}

/** Returns true for an answer that is neither text nor JSON, so that nothing in it is read or changed. */
export function isMedia(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return /^(?:audio|image|video)\/|^application\/octet-stream/i.test(type);
}

/** Returns true if the content type is that of an event stream. */
export function isEventStream(head: ResponseHead): boolean {
  const type = head.contentType;
  if (type === null || type === 'application/json') return false;
  return type.toLowerCase().startsWith('text/event-stream');
}

/** Beginnings of the lines of an event stream (HTML, section 9.2.6), except comments. */
const fieldStarts = ['data:', 'event:', 'id:', 'retry:'];
const longestStart = 6;

/**
 * Classifies an answer by its first bytes: some servers omit the type of a stream, or answer a request for a stream with
 * JSON.
 * @param isWhole nothing follows these bytes
 * @returns null if more bytes are needed
 */
function kindOfAnswer(first: Buffer, isWhole: boolean): 'events' | 'json' | 'other' | null {
  const at = textStart(first);
  const start = first.toString('latin1', at, at + longestStart);
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith(':') || fieldStarts.some((field) => start.startsWith(field))) return 'events';
  const mayFollow = fieldStarts.some((field) => field.startsWith(start));
  return mayFollow && !isWhole ? null : 'other';
}

/** Error answers up to this size are gathered whole, which is necessary to know that they are JSON. */
const wholeErrorBytes = 1024 * 1024;

/** An answer whose kind is still unknown after this many bytes is neither a stream nor JSON. */
const decidingBytes = 4096;

/** Returns the phase in which a useful answer is read, by its head. */
export function phaseByHead(
  transform: AnswerTransform,
  head: ResponseHead,
  { streamed, secrets }: { readonly streamed: boolean; readonly secrets: OwnSecrets },
): Phase {
  if (head.status >= 400)
    return { name: 'whole', transform, head, mostBytes: wholeErrorBytes, gathered: null };
  if (!streamed) return unstreamed(transform, head, secrets);
  if (isEventStream(head)) return new Events(transform, head);
  return { name: 'undecided', transform, head, gathered: new Gather(decidingBytes) };
}

/** Makes the inspection of the first bytes of an answer that is passed on as it arrives. */
export function beginningOf(head: ResponseHead, secrets: OwnSecrets): Beginning {
  return new Beginning(secrets, isMedia(head) ? beginningBytes : Number.POSITIVE_INFINITY);
}

function unstreamed(transform: AnswerTransform, head: ResponseHead, secrets: OwnSecrets): Phase {
  if (leavesWhole(head, transform))
    return { name: 'whole', transform, head, mostBytes: transform.wholeBytes, gathered: null };
  return { name: 'opening', transform, head, beginning: beginningOf(head, secrets) };
}

/**
 * Classifies by its first bytes an answer that should be a stream and does not have the content type of one.
 * @param mayBeJson it may be relayed as JSON
 * @returns the phase in which it is read from now on and the bytes that have arrived, or null while more bytes are needed.
 * The phase is null for a useless answer
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

/** Whether a good answer is gathered whole before it is sent. Else it is sent piece by piece. */
function leavesWhole(head: ResponseHead, transform: AnswerTransform): boolean {
  return head.contentLength <= transform.wholeBytes && !(transform.divisible && isMedia(head));
}

/** Returns the error for a stream that ended without an event. */
export function emptyStreamError(): GatewayError {
  return new GatewayError('upstream_error', "The upstream's stream ended before its first event.", {
    cause: 'ended before its first event',
  });
}

/** Returns the error for an answer that exceeds a limit of the gateway. */
export function answerTooLarge(message: string): GatewayError {
  return new GatewayError('upstream_error', message, { answerTooLarge: true });
}
