import { asGatewayError, type FaultPlace, GatewayError } from '../errors.js';
import { acceptedCodings } from '../http/content-coding.js';
import type { ExchangeListener } from '../http/exchange.js';
import type { CallOutcome } from '../metrics/call-record.js';
import type { ResponseHead } from '../upstream/types.js';
import { parseEvent } from '../wire/sse.js';
import { ownLines, passedLines, pathLine, timingLine } from './answer/lines.js';
import type { Call } from './call.js';
import { account } from './record/account.js';
import type { Services } from './services.js';

/**
 * Returns the outcome of a call that ends with an error, whatever part of an answer was sent: `upstream_error` only for an
 * error whose source is the upstream.
 */
export function outcomeOf({ source }: GatewayError): CallOutcome {
  return source === 'upstream' ? 'upstream_error' : 'refused';
}

/**
 * Returns the error for the client when something was thrown during its call. A `GatewayError` is returned as it is.
 * Anything else is counted and logged as an unexpected exception, and becomes `internal_error`.
 */
export function refusalOf(services: Services, call: Call, where: FaultPlace, thrown: unknown): GatewayError {
  if (!(thrown instanceof GatewayError)) services.reportFault(where, thrown, call);
  return asGatewayError(thrown);
}

/**
 * Answers a call with an error in its caller's error format. Nothing of an answer may have been sent yet.
 * @param head of the upstream's answer that the error reports, or null
 * @param more header lines, each with CRLF before it
 */
export function refuse(
  services: Services,
  call: Call,
  error: GatewayError,
  head: ResponseHead | null = null,
  more = '',
): void {
  call.error = error;
  if (error.limit !== null) services.reportLimit(error.limit);
  // A client that gets an error is not charged, whatever an upstream has done. The exception is a task that could not be
  // recorded: it has its price and continues.
  if (call.costNanos < 0) {
    call.isServed = false;
    call.usage = null;
  }
  const { exchange, errorFormat } = call;
  // If the length of the rest of the body is announced, the rest is read and discarded, so that the client reads the answer.
  // A rest of unknown or absurd length is not waited for.
  const { chunked, contentLength } = exchange.head;
  if (call.body === null && (chunked || contentLength > call.running.snapshot.limits.uploadBytes))
    exchange.closing = true;
  let lines = ownLines(call) + more;
  if (head !== null) lines += passedLines(call, head, true);
  if (error.retryAfter !== null && (head === null || head.get('retry-after') === null))
    lines += `\r\nretry-after: ${error.retryAfter}`;
  if (error.allow !== null) lines += `\r\nallow: ${error.allow}`;
  if (error.unrepeatable || error.kind === 'not_implemented') lines += '\r\nx-should-retry: false';
  if (error.kind === 'upgrade_required') lines += '\r\nupgrade: websocket';
  if (error.kind === 'unsupported_media_type')
    lines += `\r\naccept-encoding: ${call.route?.form == null ? acceptedCodings : 'identity'}`;
  if (error.source === 'upstream') lines += pathLine(call);
  exchange.respond(error.status, lines + timingLine(call), errorFormat.errorBody(error, exchange.id));
  account(services, call, outcomeOf(error));
}

interface LastWords {
  /** Sequence number of the error event in its stream. */
  readonly number: number;
  /** Part of an event was sent, and its end never will be. */
  readonly insideEvent: boolean;
  /** Makes the last words of the error format's error event; null if only keep-alives were sent. */
  readonly words: (event: string) => string | null;
}

/**
 * Ends a stream that has begun. A blank line closes an unfinished event. An error event follows, since most SDKs treat a
 * clean early end as success. The caller accounts for the call.
 */
export function refuseStream(
  call: Call,
  error: GatewayError,
  { number, insideEvent, words }: LastWords,
): void {
  call.error = error;
  const event = call.errorFormat.errorEvent(error, call.exchange.id, number);
  const text = words(event) ?? (call.framing === 'array' ? `[${parseEvent(event).data}]` : event);
  call.exchange.write(Buffer.from(insideEvent ? `\n\n${text}` : text));
  endFailedStream(call);
}

/** Ends a stream whose error event was sent, so that its client treats it as a failure. */
export function endFailedStream({ exchange, errorFormat: { readsErrorEvents } }: Call): void {
  if (readsErrorEvents === null || readsErrorEvents(exchange.head.userAgent)) exchange.end();
  else exchange.endTruncated();
}

const keepAlives = new Map<string, Buffer>();
/** Parsers ignore white space between the elements of an array. */
const arrayKeepAlive = Buffer.from('\n');

/** Returns what is sent in a call's stream while its upstream is silent. */
export function keepAliveBytes({ errorFormat, framing }: Call): Buffer {
  if (framing === 'array') return arrayKeepAlive;
  const known = keepAlives.get(errorFormat.keepAlive);
  if (known !== undefined) return known;
  const bytes = Buffer.from(errorFormat.keepAlive);
  keepAlives.set(errorFormat.keepAlive, bytes);
  return bytes;
}

/**
 * Ends a call during which something was thrown: a refusal of any phase, or an unexpected exception (`refusalOf`). Its
 * client is answered in its own protocol, whatever it waits for is cancelled, and whatever it holds is returned. Never
 * throws: an exception in one step is recorded, and the other steps follow.
 */
export function endThrown(services: Services, call: Call, where: FaultPlace, thrown: unknown): void {
  const { exchange } = call;
  const { listener } = exchange;
  const error = refusalOf(services, call, where, thrown);
  if (call.accounted && !exchange.alive) return;
  const succeeds = (step: () => void): boolean => {
    try {
      step();
      return true;
    } catch (second) {
      services.reportFault(where, second, call);
      return false;
    }
  };
  call.error = error;
  const isAnswered = succeeds(() => answerWith(services, call, listener, error));
  if (!isAnswered) succeeds(() => exchange.abort());
  succeeds(() => account(services, call, outcomeOf(error)));
  // Work begun for the call ends as if the client had disconnected, but the call's record does not say so.
  succeeds(() => listener?.onClientGone());
}

function answerWith(
  services: Services,
  call: Call,
  listener: ExchangeListener | null,
  error: GatewayError,
): void {
  const { exchange } = call;
  if (listener?.onOurFault !== undefined) listener.onOurFault(error);
  else if (!exchange.isAnswered) refuse(services, call, error);
  else exchange.abort();
}
