import { createHash } from 'node:crypto';
import type { Protocol, Target, Upstream } from '../config/types.js';
import { credentialLine, vendorLines } from '../protocols/credentials/upstream-lines.js';
import {
  type HeadLines,
  headerLine,
  headerLinesOf,
  joinLines,
  noLines,
  requestLine,
  writableLinesOf,
} from '../wire/head.js';
import type { Call } from './call.js';

/** What every request to a target begins with, made and checked once for each path and key. */
const prefixes = new WeakMap<Target, Map<string, readonly HeadLines[]>>();

const contentTypeLine = headerLinesOf('content-type');
const requestIdLine = writableLinesOf('x-request-id');
const jsonLine = contentTypeLine('application/json');

/** What the head of a request to a target has of its own. */
export interface HeadParts {
  /** Under the upstream's base URL, with its query; one of few for a target. */
  readonly upstreamPath: string;
  /** Protocol in which the upstream is called. */
  readonly wire: Protocol;
  readonly contentType: string;
}

/**
 * The head of the POST to an upstream: without framing headers and the empty line, which the client adds.
 * @param key index of the upstream's key; 0 where it has none
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function upstreamHead(call: Call, target: Target, key: number, parts: HeadParts): HeadLines {
  const { head, id } = call.exchange;
  const prefix = prefixesOf(target, parts.upstreamPath)[key];
  if (prefix === undefined) throw new Error(`the upstream ${target.upstream.name} has no key ${key}`);
  return joinLines(
    prefix,
    typeLine(parts.contentType),
    requestIdLine(id),
    vendorLines(parts.wire, head, target.upstream),
    head.forwarded,
    idempotencyLine(call),
  );
}

/** Nearly all bodies are JSON. */
function typeLine(contentType: string): HeadLines {
  return contentType === 'application/json' ? jsonLine : contentTypeLine(contentType);
}

/** A request whose path is its own, so that nothing of it is kept. */
export interface OneOffRequest {
  readonly method: 'GET' | 'POST';
  /** Under the upstream's base URL, with its query. */
  readonly path: string;
  /** Null where there is no body. */
  readonly contentType: string | null;
  readonly wire: Protocol;
  /** Key to sign in with, or null where the upstream has none. */
  readonly apiKey: string | null;
  /** More header lines. */
  readonly lines: HeadLines;
}

/** The head of such a request, as `upstreamHead` gives it. */
export function oneOffHead(call: Call, upstream: Upstream, request: OneOffRequest): HeadLines {
  const { head, id } = call.exchange;
  return joinLines(
    startOf(upstream, request.method, request.path),
    request.apiKey === null ? noLines : credentialLine(upstream.kind, request.apiKey),
    request.contentType === null ? noLines : typeLine(request.contentType),
    requestIdLine(id),
    vendorLines(request.wire, head, upstream),
    request.lines,
  );
}

/** Header lines of a handshake with an upstream, of those that are not its own. */
export function socketLines(
  call: Call,
  upstream: Upstream,
  apiKey: string | null,
  vendor: HeadLines,
): HeadLines {
  const { head, id } = call.exchange;
  return joinLines(
    configuredLines(upstream),
    requestIdLine(id),
    apiKey === null ? noLines : credentialLine(upstream.kind, apiKey),
    vendor,
    head.forwarded,
  );
}

/** One of an upstream's keys, or null where it has none. */
function anyKey({ apiKeys }: Upstream): string | null {
  return apiKeys[Math.floor(Math.random() * apiKeys.length)] ?? null;
}

/** A name for a key that tells it from the upstream's others and says nothing about it. */
export function keyMark(apiKey: string | null): string | null {
  return apiKey === null ? null : createHash('sha256').update(apiKey).digest('hex').slice(0, 16);
}

/** The key with a mark, or any other where it is gone: another key of the account may do as well. */
export function markedKey(upstream: Upstream, mark: string | null): string | null {
  return upstream.apiKeys.find((key) => keyMark(key) === mark) ?? anyKey(upstream);
}

function prefixesOf(target: Target, path: string): readonly HeadLines[] {
  const known = prefixes.get(target);
  const found = known?.get(path);
  if (found !== undefined) return found;
  const made = makePrefixes(target, path);
  if (known === undefined) prefixes.set(target, new Map([[path, made]]));
  else known.set(path, made);
  return made;
}

/** One for each of the upstream's keys. */
function makePrefixes({ upstream }: Target, path: string): readonly HeadLines[] {
  const start = startOf(upstream, 'POST', path);
  if (upstream.apiKeys.length === 0) return [start];
  return upstream.apiKeys.map((key) => joinLines(start, credentialLine(upstream.kind, key)));
}

function startOf(upstream: Upstream, method: string, path: string): HeadLines {
  return joinLines(
    requestLine(method, upstream.basePath + path),
    headerLine('host', upstream.origin.authority),
    headerLine('accept-encoding', 'identity'),
    configuredLines(upstream),
  );
}

function configuredLines({ headers }: Upstream): HeadLines {
  return headers.reduce((lines, [name, value]) => joinLines(lines, headerLine(name, value)), noLines);
}

/**
 * What a request is known by that its client may send again: its idempotency key bound to the client's own key, so that
 * two clients who choose the same words never meet, neither here nor at an upstream whose account they share.
 * @returns null for a request without one
 */
export function idempotencyMark({ exchange, key }: Call): string | null {
  const { idempotencyKey } = exchange.head;
  if (idempotencyKey === '') return null;
  return createHash('sha256').update(`${key?.id}\n${idempotencyKey}`).digest('hex');
}

const keyLine = headerLinesOf('idempotency-key');

/** The header line for an upstream, or none. */
export function idempotencyLine(call: Call): HeadLines {
  const mark = idempotencyMark(call);
  return mark === null ? noLines : keyLine(mark);
}
