import { performance } from 'node:perf_hooks';
import { secretError } from '../../protocols/error-formats/vendor-account.js';
import type { ResponseHead } from '../../upstream/types.js';
import { fieldsOfConnection } from '../../wire/head.js';
import { isReturned, returnedInitials } from '../../wire/passed-headers.js';
import type { Call } from '../call.js';

const json = 'application/json';
const streamTypes = {
  sse: '\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no',
  array: '\r\ncontent-type: application/json\r\ncache-control: no-cache\r\nx-accel-buffering: no',
} as const;

/**
 * Returns the line under which a header of an upstream's answer is passed on, or an empty string if it is not. The
 * upstream's request id is sent beside the gateway's own.
 */
function passedLine(name: string, value: string, isLimited: boolean): string {
  if (name === 'x-request-id' || name === 'request-id') return `\r\nx-upstream-request-id: ${value}`;
  return isReturned(name, isLimited) ? `\r\n${name}: ${value}` : '';
}

/** Returns true for a value with a secret of the upstream: some servers name a request after what it was sent with. */
function holdsSecret({ target }: Call, value: string): boolean {
  return target !== null && secretError(value, target.upstream.secrets) !== null;
}

/**
 * Like `holdsSecret`, for any line of an answer. Most answers are good, and may contain text that looks like an account's
 * name.
 */
function holdsKey({ target }: Call, text: string): boolean {
  return target?.upstream.secrets.keys.some((key) => text.includes(key)) === true;
}

/**
 * Returns the header lines of an upstream's answer that are passed on, each with CRLF before it.
 * @param isError the answer is sent as an error, whatever its status: its lines may not name the gateway's account
 */
export function passedLines(call: Call, head: ResponseHead, isError = head.status >= 400): string {
  const named = call.target?.upstream.returnHeaders ?? null;
  if (!head.mayHave(named === null ? returnedInitials : returnedInitials | named.initials)) return '';
  const { fields } = head;
  const isLimited = call.limits !== null;
  let lines = '';
  let connection = '';
  for (let i = 0; i < fields.length; i += 2) {
    const value = fields[i + 1] as string;
    const name = fields[i] as string;
    if (name === 'connection') connection = connection === '' ? value : `${connection}, ${value}`;
    let line = passedLine(name, value, isLimited);
    if (line === '' && named?.names.has(name)) line = `\r\n${name}: ${value}`;
    if (line !== '' && !(isError && holdsSecret(call, value))) lines += line;
  }
  const ofConnection = fieldsOfConnection(connection);
  if (ofConnection !== null) lines = withoutFields(lines, ofConnection);
  // The lines are searched together: searching each one would cost time for every answer.
  return isError || !holdsKey(call, lines) ? lines : withoutKeys(call, lines);
}

/** Removes the lines of an answer's fields that belong to the upstream's connection (RFC 9110 section 7.6.1). */
function withoutFields(lines: string, names: ReadonlySet<string>): string {
  const isRequestId = names.has('x-request-id') || names.has('request-id');
  return lines
    .split(/(?=\r\n)/)
    .filter((line) => {
      const name = line.slice('\r\n'.length, line.indexOf(':'));
      return !names.has(name) && !(isRequestId && name === 'x-upstream-request-id');
    })
    .join('');
}

function withoutKeys(call: Call, lines: string): string {
  return lines
    .split(/(?=\r\n)/)
    .filter((line) => !holdsKey(call, line))
    .join('');
}

/** Returns the content type of an upstream's answer: without its parameters if they contain a secret, or null. */
function passedType(call: Call, { contentType }: ResponseHead): string | null {
  if (contentType === null || contentType === json || !holdsSecret(call, contentType)) return contentType;
  const [bare = ''] = contentType.split(';', 1);
  return holdsSecret(call, bare) ? null : bare;
}

/** Returns the header lines of a JSON answer that the gateway makes, except its timing, each with CRLF before it. */
export function ownLines(call: Call): string {
  return `\r\ncontent-type: application/json${requestIdLine(call)}${rateLines(call)}`;
}

function rateLines(call: Call): string {
  return call.limits === null ? '' : call.limits.lines(call);
}

/** Returns the line with the request id under the name that the error format's SDKs read beside `x-request-id`. */
function requestIdLine({ errorFormat, exchange }: Call): string {
  return errorFormat.requestIdHeader === null ? '' : `\r\n${errorFormat.requestIdHeader}: ${exchange.id}`;
}

/** Returns the header line that lists what translation has left out, with CRLF before it, or an empty string. */
export function leftOutLine({ leftOut }: Call): string {
  return leftOut.length === 0 ? '' : `\r\nx-gateway-left-out: ${leftOut.join(', ')}`;
}

/** Returns the header line that tells how a request reached its upstream, with CRLF before it; empty if none was asked. */
export function pathLine({ gatewayPath }: Call): string {
  return gatewayPath === null ? '' : `\r\nx-gateway-path: ${gatewayPath}`;
}

/** The usual beginnings of heads, each as one string. A concatenated string is copied from its parts whenever it is sent. */
const jsonStarts = {
  exact: '\r\nx-gateway-path: exact\r\ncontent-type: application/json',
  spliced: '\r\nx-gateway-path: spliced\r\ncontent-type: application/json',
  translated: '\r\nx-gateway-path: translated\r\ncontent-type: application/json',
} as const;

function startOf(call: Call, type: string | null): string {
  const { gatewayPath } = call;
  if (type === json && gatewayPath !== null) return jsonStarts[gatewayPath];
  return pathLine(call) + (type === null ? '' : `\r\ncontent-type: ${type}`);
}

/** Returns the header lines of an answer that relays an upstream's, each with CRLF before it. */
export function answerLines(call: Call, head: ResponseHead): string {
  // A translated answer is the gateway's own JSON.
  const type = call.gatewayPath === 'translated' ? json : passedType(call, head);
  return (
    startOf(call, type) +
    leftOutLine(call) +
    requestIdLine(call) +
    passedLines(call, head) +
    rateLines(call) +
    timingLine(call)
  );
}

/** Returns the header lines of a stream, each with CRLF before it. `head` is null while the upstream is silent. */
export function streamLines(call: Call, head: ResponseHead | null): string {
  return (
    streamTypes[call.framing] +
    requestIdLine(call) +
    pathLine(call) +
    leftOutLine(call) +
    (head === null ? '' : passedLines(call, head)) +
    rateLines(call) +
    timingLine(call)
  );
}

/** The texts of times below this many microseconds, which most steps take, are kept. */
const keptMicros = 2000;

/** Formats the time of one step of a call for `server-timing`. */
class Step {
  readonly #name: string;
  readonly #end: string;
  readonly #cache: string[] = Array.from({ length: keptMicros }, () => '');

  /** @param end text after the time */
  constructor(name: string, end: string) {
    this.#name = name;
    this.#end = end;
  }

  /** @returns `name;dur=` and the milliseconds with three decimals. Clients need no finer times */
  text(ms: number): string {
    const micros = Math.max(0, Math.round(ms * 1000));
    const kept = this.#cache[micros];
    if (kept === undefined) return this.#write(micros);
    return kept === '' ? this.#cached(micros) : kept;
  }

  #cached(micros: number): string {
    const text = this.#write(micros);
    this.#cache[micros] = text;
    return text;
  }

  /** Joined, since a string made with `+` is copied from its parts each time it is sent. */
  #write(micros: number): string {
    return [this.#name, ';dur=', (micros / 1000).toFixed(3), this.#end].join('');
  }
}

const steps = {
  auth: new Step('auth', ', '),
  parse: new Step('parse', ', '),
  queue: new Step('queue', ', '),
  upstream: new Step('upstream', ', '),
  own: new Step('own', ''),
} as const;

/**
 * Returns the `server-timing` header line with CRLF before it: the times of authentication, of parsing with validation, of
 * the wait for a connection and of the upstream's first byte, and the time spent in the gateway so far. Steps that have not
 * happened are left out.
 */
export function timingLine(call: Call): string {
  const now = performance.now();
  let line = '\r\nserver-timing: ';
  if (call.authenticatedAt > 0) line += steps.auth.text(call.authenticatedAt - call.startedAt);
  if (call.validatedAt > 0) line += steps.parse.text(call.validatedAt - call.bodyAt);
  if (call.sentAt > 0) {
    line += steps.queue.text(call.sentAt - call.validatedAt);
    if (call.answeredAt > 0) line += steps.upstream.text(call.answeredAt - call.sentAt);
  }
  const waitedForBody = call.bodyAt - call.authenticatedAt;
  // From validation to the upstream's head, or to now if none arrived, the gateway waited for others.
  const handedOver =
    call.validatedAt > 0 ? (call.answeredAt > 0 ? call.answeredAt : now) - call.validatedAt : 0;
  return line + steps.own.text(now - call.startedAt - waitedForBody - handedOver);
}
