import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { encodedKeyError, vendorAccountErrorOf } from '../../protocols/error-formats/vendor-account.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { Beginning, beginningBytes, Gather } from '../../stream/gather.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson, parseObject } from '../../wire/json.js';
import { skipSpace, textStart } from '../../wire/json-skip.js';
import { looksLikeText } from '../../wire/plain-text.js';
import { Events, type Phase, type Undecided } from './phase.js';

/* What an upstream's answer is, by its head and its first bytes: how it is taken, or why it is of no use. */

/** No error is larger: what is, is not looked into. */
const longestError = 64 * 1024;

const commentStart = '<!--';
const commentEnd = '-->';

/** Why an answer is of no use for a call, or null. */
export function answerError(head: ResponseHead, streamed: boolean): GatewayError | null {
  if (head.status >= 300 && head.status < 400)
    return new GatewayError('upstream_error', 'The upstream answered with a redirect.');
  // What the client could decode was decoded there, and its header is gone.
  const coding = head.contentCoding;
  if (coding !== null && coding !== 'identity')
    return new GatewayError('upstream_error', 'The upstream used an unknown content-encoding.');
  if (head.status >= 400 || streamed || !isEventStream(head)) return null;
  return new GatewayError(
    'unsupported_stream_event',
    'The upstream returned a stream that was not requested.',
  );
}

/** What is said of an answer that should be a stream and is neither that nor to be handed on. */
export function noStream(): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    'A stream was requested, and the upstream returned something else.',
  );
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
    return new GatewayError('upstream_error', 'The upstream returned an error with a status of success.');
  if (isFit) return null;
  return new GatewayError('upstream_error', 'The upstream answered with something other than JSON.');
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

/** True for a file that is a page, or called JSON, in the place of an image. SVG is text, too, and neither. */
export function isNoImage(type: string | null, bytes: Buffer): boolean {
  return (isPage(type, bytes) && !isSvg(bytes)) || startsAsJson(type);
}

/** True for SVG behind comments, which a page may begin with, too. */
function isSvg(bytes: Buffer): boolean {
  let at = textStart(bytes);
  while (bytes.toString('latin1', at, at + commentStart.length) === commentStart) {
    const end = bytes.indexOf(commentEnd, at + commentStart.length);
    if (end === -1) return false;
    at = skipSpace(bytes, end + commentEnd.length);
  }
  return /^<(?:!doctype\s+)?svg\b/i.test(bytes.toString('latin1', at, at + 64));
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

/** Error answers are taken whole up to this size: only then is it known that they are JSON. */
const wholeErrorBytes = 1024 * 1024;

/** An answer that has not shown by so many bytes what it is, is neither a stream nor JSON. */
const decidingBytes = 4096;

/** How an answer is taken that is of use, by its head. */
export function takenAs(
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

/** What may be known of an answer that is passed on as it comes, before it is. */
export function beginningOf(head: ResponseHead, secrets: OwnSecrets): Beginning {
  return new Beginning(secrets, isMedia(head) ? beginningBytes : Number.POSITIVE_INFINITY);
}

function unstreamed(transform: AnswerTransform, head: ResponseHead, secrets: OwnSecrets): Phase {
  if (leavesWhole(head, transform))
    return { name: 'whole', transform, head, mostBytes: transform.wholeBytes, gathered: null };
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

/** Whether a good answer is kept until all of it is there; else it leaves piece by piece. */
function leavesWhole(head: ResponseHead, transform: AnswerTransform): boolean {
  return head.contentLength <= transform.wholeBytes && !(transform.divisible && isMedia(head));
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
