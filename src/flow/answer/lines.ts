import { performance } from 'node:perf_hooks';
import { secretError } from '../../protocols/error-formats/vendor-account.js';
import type { ResponseHead } from '../../upstream/types.js';
import { isReturned, returnedInitials } from '../../wire/passed-headers.js';
import type { Call } from '../call.js';

const json = 'application/json';
const streamTypes = {
  sse: '\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no',
  array: '\r\ncontent-type: application/json\r\ncache-control: no-cache\r\nx-accel-buffering: no',
} as const;

/**
 * The line under which an upstream's answer header is handed on, or an empty string for one that stays here: its request
 * id goes beside ours.
 */
function passedLine(name: string, value: string, isLimited: boolean): string {
  if (name === 'x-request-id' || name === 'request-id') return `\r\nx-upstream-request-id: ${value}`;
  return isReturned(name, isLimited) ? `\r\n${name}: ${value}` : '';
}

/** Some servers name a request after what it was sent with. */
function holdsSecret({ target }: Call, value: string): boolean {
  return target !== null && secretError(value, target.upstream.secrets) !== null;
}

/** The same for a line of any answer. Most are good, and may hold what looks like an account's name. */
function holdsKey({ target }: Call, text: string): boolean {
  return target?.upstream.secrets.keys.some((key) => text.includes(key)) === true;
}

/**
 * Header lines of an upstream's answer that are handed on, each with CRLF before it.
 * @param isError it is told as an error, whatever its status: then no word of it may name our account
 */
export function passedLines(call: Call, head: ResponseHead, isError = head.status >= 400): string {
  const named = call.target?.upstream.returnHeaders ?? null;
  if (!head.mayHave(named === null ? returnedInitials : returnedInitials | named.initials)) return '';
  const { fields } = head;
  const isLimited = call.limited !== null;
  let lines = '';
  for (let i = 0; i < fields.length; i += 2) {
    const value = fields[i + 1] as string;
    const name = fields[i] as string;
    let line = passedLine(name, value, isLimited);
    if (line === '' && named?.names.has(name)) line = `\r\n${name}: ${value}`;
    if (line !== '' && !(isError && holdsSecret(call, value))) lines += line;
  }
  // Looked through at once: for each line it would cost every answer.
  return isError || !holdsKey(call, lines) ? lines : withoutKeys(call, lines);
}

function withoutKeys(call: Call, lines: string): string {
  return lines
    .split(/(?=\r\n)/)
    .filter((line) => !holdsKey(call, line))
    .join('');
}

/** The type of an upstream's answer: without its parameters where these hold a secret, or none. */
function passedType(call: Call, { contentType }: ResponseHead): string | null {
  if (contentType === null || contentType === json || !holdsSecret(call, contentType)) return contentType;
  const [bare = ''] = contentType.split(';', 1);
  return holdsSecret(call, bare) ? null : bare;
}

/** Header lines of a JSON answer of the gateway's own, each with CRLF before it, but for its timing. */
export function ownLines(call: Call): string {
  return `\r\ncontent-type: application/json${requestIdLine(call)}${rateLines(call)}`;
}

function rateLines(call: Call): string {
  return call.limited === null ? '' : call.limited.lines(call);
}

/** The request id under the name that the error format's SDKs read beside `x-request-id`. */
function requestIdLine({ errorFormat, exchange }: Call): string {
  return errorFormat.requestIdHeader === null ? '' : `\r\n${errorFormat.requestIdHeader}: ${exchange.id}`;
}

/** The header line with what a translated call lost on its way, with CRLF before it; empty for nothing. */
export function leftOutLine({ leftOut }: Call): string {
  return leftOut.length === 0 ? '' : `\r\nx-gateway-left-out: ${leftOut.join(', ')}`;
}

/** What most heads begin with, as one string: of one that was put together the parts are copied when it is sent. */
const jsonStarts = {
  exact: '\r\nx-gateway-path: exact\r\ncontent-type: application/json',
  spliced: '\r\nx-gateway-path: spliced\r\ncontent-type: application/json',
  translated: '\r\nx-gateway-path: translated\r\ncontent-type: application/json',
} as const;

function startOf({ gatewayPath }: Call, type: string | null): string {
  if (type === json && gatewayPath !== null) return jsonStarts[gatewayPath];
  return `\r\nx-gateway-path: ${gatewayPath}${type === null ? '' : `\r\ncontent-type: ${type}`}`;
}

/** Header lines of an answer that hands on an upstream's, each with CRLF before it. */
export function answerLines(call: Call, head: ResponseHead): string {
  // What was translated is the gateway's own JSON.
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

/** Header lines of a stream, each with CRLF before it. `head` is null when the upstream is still silent. */
export function streamLines(call: Call, head: ResponseHead | null): string {
  return (
    streamTypes[call.framing] +
    requestIdLine(call) +
    `\r\nx-gateway-path: ${call.gatewayPath}` +
    leftOutLine(call) +
    (head === null ? '' : passedLines(call, head)) +
    rateLines(call) +
    timingLine(call)
  );
}

/** Times of fewer microseconds have their texts kept: those of most steps. */
const keptMicros = 2000;

/** Writes the time that one step of a call took, for `server-timing`. */
class Step {
  readonly #name: string;
  readonly #end: string;
  readonly #cache: string[] = Array.from({ length: keptMicros }, () => '');

  /** @param end what follows the time */
  constructor(name: string, end: string) {
    this.#name = name;
    this.#end = end;
  }

  /** @returns `name;dur=` and the milliseconds with three decimals, which no client needs finer */
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

  /** Joined, since a string that is put together with `+` is copied from its parts each time it is sent. */
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
 * The `server-timing` header as a line with CRLF before it: how long authentication, parsing with validation,
 * the wait for a connection, and the upstream's first byte took, and what the gateway itself has cost so far.
 * Steps that have not happened are left out.
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
  // From validation to the upstream's head, or to now where none came, the gateway waited for others.
  const handedOver =
    call.validatedAt > 0 ? (call.answeredAt > 0 ? call.answeredAt : now) - call.validatedAt : 0;
  return line + steps.own.text(now - call.startedAt - waitedForBody - handedOver);
}
