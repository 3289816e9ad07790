import { createHash } from 'node:crypto';
import type { ConfiguredHeaders, Protocol, Target, Upstream } from '../../config/types.js';
import type { RequestHead } from '../../http/request-head.js';
import {
  clientInfoLines,
  credentialLine,
  type VendorHeaders,
  vendorLines,
} from '../../protocols/credentials/credentials.js';
import type { SocketRequest } from '../../upstream/socket-types.js';
import { loopLine } from '../../wire/gateway-loop.js';
import {
  fieldsOf,
  type HeadLines,
  headerLine,
  headerLinesOf,
  inOnePiece,
  joinLines,
  KeptHead,
  LinePair,
  linesWhere,
  NumberedHead,
  noLines,
  type RequestHeadLines,
  requestIdLine,
  requestLine,
} from '../../wire/head.js';
import { withQuery } from '../../wire/query.js';
import type { Call, RequestSender } from '../call.js';

/**
 * The beginnings of requests to an upstream, made and checked once for each path and key. Thousands of models without
 * headers of their own may share one, so that the bytes that their calls write stay in the processor's caches.
 */
const starts = new WeakMap<ConfiguredHeaders, Map<string, readonly HeadStart[]>>();

/** A client's own lines are not kept beyond this length. */
const mostKept = 4096;

/** The beginning of requests, and the rest of the last ones with a JSON body. */
class HeadStart {
  readonly lines: HeadLines;
  #vendor = noLines;
  #client = noLines;
  /** Null until two successive requests have had the same rest. */
  #kept: KeptHead | null = null;

  constructor(lines: HeadLines) {
    this.lines = inOnePiece(lines);
  }

  /** @returns what is kept of heads that continue with these lines, or null if the one before continued differently */
  kept(vendor: HeadLines, client: HeadLines): KeptHead | null {
    if (vendor === this.#vendor && client === this.#client) {
      if (vendor.length + client.length > mostKept) return null;
      this.#kept ??= new KeptHead(joinLines(this.lines, jsonLine), joinLines(vendor, client));
      return this.#kept;
    }
    this.#vendor = vendor;
    this.#client = client;
    this.#kept = null;
    return null;
  }
}

const contentTypeLine = headerLinesOf('content-type');
const json = 'application/json';
const jsonLine = inOnePiece(contentTypeLine(json));

/** The parts of a request's head that differ between targets. */
export interface HeadParts {
  /** Path under the upstream's base URL, with its query. A target has few of them. */
  readonly upstreamPath: string;
  /** Protocol of the request to the upstream. */
  readonly protocol: Protocol;
  readonly contentType: string;
}

/**
 * Returns the head of the POST to an upstream, without framing headers and the empty line, which the upstream client adds.
 * @param keyIndex index of the upstream's key; 0 if it has none
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function upstreamHead(
  call: Call,
  target: Target,
  keyIndex: number,
  parts: HeadParts,
): RequestHeadLines {
  const { head, id, number } = call.exchange;
  const { contentType, protocol } = parts;
  const start = startsOf(target, parts.upstreamPath)[keyIndex];
  if (start === undefined) throw new Error(`the upstream ${target.upstream.name} has no key ${keyIndex}`);
  const vendor = vendorLines(protocol, head, target.upstream.kind, target);
  const client = clientLines(call, target, protocol);
  const kept = contentType === json && number >= 0 ? start.kept(vendor, client) : null;
  if (kept !== null) return new NumberedHead(kept, number);
  return joinLines(start.lines, typeLine(contentType), requestIdLine(id), vendor, client);
}

const idempotencyLine = headerLinesOf('idempotency-key');

/**
 * Returns the lines for an upstream from a client's head, beside those of the vendor's own headers.
 * @param protocol of the request to the upstream
 */
export function clientLines(call: Call, target: Target, protocol: Protocol): HeadLines {
  const lines = forwardedLines(call, target, protocol);
  const mark = target.clientHeaders?.without.has('idempotency-key') ? null : idempotencyMark(call);
  return mark === null ? lines : joinLines(lines, idempotencyLine(mark));
}

const ofClient = new LinePair();

/** Returns the same lines without the idempotency key. */
export function forwardedLines({ exchange }: Call, target: Target, protocol: Protocol): HeadLines {
  const { head } = exchange;
  const { clientHeaders } = target;
  const lines = ofClient.join(head.forwarded, clientInfoLines(protocol, head, target.upstream.kind));
  if (clientHeaders === null) return lines;
  const { without, pass, editsForwarded } = clientHeaders;
  const kept = editsForwarded ? linesWhere(lines, (name) => !without.has(name)) : lines;
  return pass.size === 0 ? kept : joinLines(kept, allowedLines(head, lines, pass));
}

/**
 * Returns only those lines of a client's head that the config passes on. If they name an account, it is the account that has
 * made what is requested by its id.
 */
export function configuredPass({ exchange }: Call, { clientHeaders }: ConfiguredHeaders): HeadLines {
  return clientHeaders === null ? noLines : allowedLines(exchange.head, noLines, clientHeaders.pass);
}

/**
 * Returns the further lines that the config of a target passes on. They may be headers that clients of other vendors send.
 */
function allowedLines(head: RequestHead, sent: HeadLines, pass: ReadonlySet<string>): HeadLines {
  const { passed, sharedLines, openaiLines, anthropicLines, googleLines } = head;
  const isSent = new Set(fieldsOf(sent).map(([name]) => name));
  return linesWhere(
    joinLines(passed, sharedLines, openaiLines, anthropicLines, googleLines),
    (name) => pass.has(name) && !isSent.has(name),
  );
}

/** Nearly all bodies are JSON. */
function typeLine(contentType: string): HeadLines {
  return contentType === json ? jsonLine : contentTypeLine(contentType);
}

/** A request with a path of its own, so that nothing of its head is kept. */
export interface OneOffRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path under the upstream's base URL, with its query. */
  readonly path: string;
  /** Null if there is no body. */
  readonly contentType: string | null;
  readonly protocol: Protocol;
  /** API key, or null if the upstream has none. */
  readonly apiKey: string | null;
  /** More header lines. */
  readonly lines: HeadLines;
  /** The target whose header rules apply; null for the upstream's own. */
  readonly target: ConfiguredHeaders | null;
}

/** Returns the head of such a request, in the form of `upstreamHead`. */
export function oneOffHead(
  call: Pick<RequestSender, 'exchange'>,
  upstream: Upstream,
  request: OneOffRequest,
): HeadLines {
  const { head, id } = call.exchange;
  const configured = request.target ?? upstream;
  return joinLines(
    startOf(upstream, request.method, request.path, configured),
    request.apiKey === null ? noLines : credentialLine(upstream, request.apiKey),
    request.contentType === null ? noLines : typeLine(request.contentType),
    requestIdLine(id),
    vendorLines(request.protocol, head, upstream.kind, configured),
    request.lines,
  );
}

/** The parts of a request for a WebSocket. */
interface SocketParts {
  readonly protocol: Protocol;
  readonly vendor: VendorHeaders;
  /** Index of the upstream's key; 0 if it has none. */
  readonly keyIndex: number;
}

/**
 * Returns the request for a WebSocket at a target.
 * @param path under the upstream's base URL, with its query
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function socketRequest(
  call: Call,
  target: Target,
  path: string,
  { protocol, vendor, keyIndex }: SocketParts,
): SocketRequest {
  const { timeouts, sockets } = call.running.snapshot;
  const { upstream } = target;
  const apiKey = upstream.apiKeys[keyIndex];
  const lines = joinLines(
    configuredLines(target),
    requestIdLine(call.exchange.id),
    apiKey === undefined ? noLines : credentialLine(upstream, apiKey),
    vendorLines(protocol, vendor, upstream.kind, target),
    forwardedLines(call, target, protocol),
  );
  return {
    origin: upstream.origin,
    path: withQuery(upstream.basePath + path, upstream.baseQuery),
    headers: fieldsOf(lines),
    maxMessageBytes: sockets.messageBytes,
    connectMs: timeouts.connectMs,
    firstByteMs: timeouts.firstByteMs,
    pingMs: sockets.pingMs,
  };
}

function startsOf(target: Target, path: string): readonly HeadStart[] {
  const holder = target.headers === target.upstream.headers ? target.upstream : target;
  const known = starts.get(holder);
  const found = known?.get(path);
  if (found !== undefined) return found;
  const made = makeStarts(target, path);
  if (known === undefined) starts.set(holder, new Map([[path, made]]));
  else known.set(path, made);
  return made;
}

/** Makes one for each of the upstream's keys. */
function makeStarts(target: Target, path: string): readonly HeadStart[] {
  const { upstream } = target;
  const start = startOf(upstream, 'POST', path, target);
  if (upstream.apiKeys.length === 0) return [new HeadStart(start)];
  return upstream.apiKeys.map((key) => new HeadStart(joinLines(start, credentialLine(upstream, key))));
}

function startOf(upstream: Upstream, method: string, path: string, configured: ConfiguredHeaders): HeadLines {
  return joinLines(
    requestLine(method, withQuery(upstream.basePath + path, upstream.baseQuery)),
    headerLine('host', upstream.origin.authority),
    headerLine('accept-encoding', 'identity'),
    configuredLines(configured),
  );
}

/** Returns the lines that every request to an upstream or target has. */
function configuredLines({ headers }: ConfiguredHeaders): HeadLines {
  return headers.reduce((lines, [name, value]) => joinLines(lines, headerLine(name, value)), loopLine);
}

/**
 * Returns the identity of a request that its client may send again: its idempotency key, bound to the client's own API key.
 * Two clients that choose the same idempotency key thus never collide, neither here nor at an upstream whose account they
 * share.
 * @returns null for a request without one
 */
export function idempotencyMark({ exchange, key }: Call): string | null {
  const { idempotencyKey } = exchange.head;
  if (idempotencyKey === '') return null;
  return createHash('sha256').update(`${key?.id}\n${idempotencyKey}`).digest('hex');
}
