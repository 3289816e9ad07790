import { GatewayError } from '../errors.js';
import { acceptedCodings } from '../http/content-coding.js';
import { account } from './account.js';
import { ownLines } from './answer.js';
import type { Call } from './call.js';
import type { Services } from './services.js';
import { timingLine } from './timing.js';

const empty = Buffer.alloc(0);

/** @returns `fault` as an error that a caller may see; one that is none of ours becomes an `internal_error`. */
function toGatewayError(services: Services, call: Call, fault: unknown): GatewayError {
  if (fault instanceof GatewayError) return fault;
  services.reportFault(call, fault);
  return new GatewayError('internal_error', null, { cause: fault });
}

/** Answers a call with an error in its caller's dialect. Nothing of an answer has left yet. */
export function refuse(services: Services, call: Call, fault: unknown): void {
  const error = toGatewayError(services, call, fault);
  call.error = error;
  const { exchange, dialect } = call;
  // An announced rest of the body is read and thrown away, so that the client gets to read the answer; one of unknown
  // or absurd length is not waited for.
  const { chunked, contentLength } = exchange.head;
  if (call.body === null && (chunked || contentLength > call.running.snapshot.limits.uploadBytes))
    exchange.closing = true;
  let lines = ownLines(call);
  if (error.retryAfter !== null) lines += `\r\nretry-after: ${error.retryAfter}`;
  if (error.allow !== null) lines += `\r\nallow: ${error.allow}`;
  if (error.kind === 'not_implemented') lines += '\r\nx-should-retry: false';
  if (error.kind === 'upgrade_required') lines += '\r\nupgrade: websocket';
  if (error.kind === 'unsupported_media_type') lines += `\r\naccept-encoding: ${acceptedCodings}`;
  exchange.respond(error.status, lines + timingLine(call), dialect.errorBody(error, exchange.id));
  account(services, call, error.source === 'upstream' ? 'upstream_error' : 'refused');
}

/**
 * Ends a stream that has begun: what is left of an unfinished event is closed by a blank line, then the dialect's
 * error event says what happened, because most SDKs take a clean early end for success. The caller accounts.
 */
export function refuseStream(call: Call, error: GatewayError, insideEvent: boolean): void {
  call.error = error;
  const event = call.dialect.errorEvent(error, call.exchange.id);
  call.exchange.write(Buffer.concat([insideEvent ? Buffer.from('\n\n') : empty, Buffer.from(event)]));
  call.exchange.end();
}
