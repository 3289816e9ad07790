import { asGatewayError, type FaultPlace, GatewayError } from '../errors.js';
import { acceptedCodings } from '../http/content-coding.js';
import type { ExchangeListener } from '../http/exchange.js';
import type { CallOutcome } from '../metrics/call-record.js';
import type { ResponseHead } from '../upstream/types.js';
import { parseEvent } from '../wire/sse.js';
import { ownLines, passedLines, timingLine } from './answer/lines.js';
import type { Call } from './call.js';
import { account } from './record/account.js';
import type { Services } from './services.js';

/** How a call ends with an error, whatever of an answer has left: only what its upstream has done is told of that. */
export function outcomeOf({ source }: GatewayError): CallOutcome {
  return source === 'upstream' ? 'upstream_error' : 'refused';
}

/**
 * What the client is told of what was thrown in the course of its call: a refusal of ours as it is; anything else is a
 * fault of ours, which is counted and logged, and told as an `internal_error`.
 */
export function refusalOf(services: Services, call: Call, where: FaultPlace, thrown: unknown): GatewayError {
  if (!(thrown instanceof GatewayError)) services.reportFault(where, thrown, call);
  return asGatewayError(thrown);
}

/**
 * Answers a call with an error in its caller's error format. Nothing of an answer has left yet.
 * @param head of the upstream's answer that the error tells of, or null
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
  // Whatever an upstream has done for it, who gets an error is not charged, but for a task that could not be noted: it has
  // its price, and goes on.
  if (call.costNanos < 0) {
    call.isServed = false;
    call.usage = null;
  }
  const { exchange, errorFormat } = call;
  // An announced rest of the body is read and thrown away, so that the client gets to read the answer; one of unknown
  // or absurd length is not waited for.
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
  if (call.gatewayPath !== null && error.source === 'upstream')
    lines += `\r\nx-gateway-path: ${call.gatewayPath}`;
  exchange.respond(error.status, lines + timingLine(call), errorFormat.errorBody(error, exchange.id));
  account(services, call, outcomeOf(error));
}

interface LastWords {
  /** Of the error event in its stream. */
  readonly number: number;
  /** Part of an event has left, and its end never will. */
  readonly insideEvent: boolean;
  /** Makes the last words of the error format's error event; null when nothing but keep-alives has left. */
  readonly words: (event: string) => string | null;
}

/**
 * Ends a stream that has begun: what is left of an unfinished event is closed by a blank line, then the error event
 * says what happened, because most SDKs take a clean early end for success. The caller accounts.
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

/** Ends a stream whose error event has left, so that its client takes it for a failure. */
export function endFailedStream({ exchange, errorFormat: { readsErrorEvents } }: Call): void {
  if (readsErrorEvents === null || readsErrorEvents(exchange.head.userAgent)) exchange.end();
  else exchange.endTruncated();
}

const keepAlives = new Map<string, Buffer>();
/** White space between the elements of an array means nothing to its parser. */
const arrayKeepAlive = Buffer.from('\n');

/** What is sent on a call's stream while its upstream is silent. */
export function keepAliveBytes({ errorFormat, framing }: Call): Buffer {
  if (framing === 'array') return arrayKeepAlive;
  const known = keepAlives.get(errorFormat.keepAlive);
  if (known !== undefined) return known;
  const bytes = Buffer.from(errorFormat.keepAlive);
  keepAlives.set(errorFormat.keepAlive, bytes);
  return bytes;
}

/**
 * Ends a call in whose course something was thrown: a refusal of any phase, or a fault of ours (`refusalOf`). Its client is
 * told in its own protocol, what it waits for is cancelled, and what it holds is given back. Never throws: a step that fails
 * in turn is noted, and the others follow.
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
  const isTold = succeeds(() => tell(services, call, listener, error));
  if (!isTold) succeeds(() => exchange.abort());
  succeeds(() => account(services, call, outcomeOf(error)));
  // As if its client had left, which it has not by its record: whatever was begun for the call ends.
  succeeds(() => listener?.onClientGone());
}

function tell(services: Services, call: Call, listener: ExchangeListener | null, error: GatewayError): void {
  const { exchange } = call;
  if (listener?.onOurFault !== undefined) listener.onOurFault(error);
  else if (!exchange.isAnswered) refuse(services, call, error);
  else exchange.abort();
}
