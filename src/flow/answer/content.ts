import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { encodedKeyError } from '../../protocols/error-formats/own-secrets.js';
import { vendorAccountErrorOf } from '../../protocols/error-formats/vendor-account.js';
import type { ResponseHead } from '../../upstream/types.js';
import { parseJson, parseObject } from '../../wire/json.js';
import { skipSpace, textStart } from '../../wire/json-skip.js';
import { looksLikeText } from '../../wire/plain-text.js';

/* What an upstream's answer is, by its head and its first bytes, and why it may be of no use. */

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
export function kindOfAnswer(first: Buffer, isWhole: boolean): 'events' | 'json' | 'other' | null {
  const at = textStart(first);
  const start = first.toString('latin1', at, at + longestStart);
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith(':') || fieldStarts.some((field) => start.startsWith(field))) return 'events';
  const mayFollow = fieldStarts.some((field) => field.startsWith(start));
  return mayFollow && !isWhole ? null : 'other';
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
