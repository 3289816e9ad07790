import { createHash } from 'node:crypto';
import type { Protocol, Target, Upstream } from '../config/types.js';
import { credentialLine, vendorLines } from '../dialects/upstream-lines.js';
import type { Call } from './call.js';
import { idempotencyLine } from './idempotency.js';

/** What every request to a target begins with, made once for each path and key. */
const prefixes = new WeakMap<Target, Map<string, readonly string[]>>();

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
 */
export function upstreamHead(call: Call, target: Target, key: number, parts: HeadParts): string {
  const { head, id } = call.exchange;
  const prefix = prefixesOf(target, parts.upstreamPath)[key];
  return `${prefix}content-type: ${parts.contentType}\r\nx-request-id: ${id}\r\n${vendorLines(parts.wire, head, target.upstream)}${head.forwarded}${idempotencyLine(call)}`;
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
  /** More header lines, CRLF behind each. */
  readonly lines: string;
}

/** The head of such a request, as `upstreamHead` gives it. */
export function oneOffHead(call: Call, upstream: Upstream, request: OneOffRequest): string {
  const { head, id } = call.exchange;
  const start = startOf(upstream, request.method, request.path);
  const credential = request.apiKey === null ? '' : credentialLine(upstream.kind, request.apiKey);
  const type = request.contentType === null ? '' : `content-type: ${request.contentType}\r\n`;
  return `${start}${credential}${type}x-request-id: ${id}\r\n${vendorLines(request.wire, head, upstream)}${request.lines}`;
}

/** One of an upstream's keys, or null where it has none. */
export function anyKey({ apiKeys }: Upstream): string | null {
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

function prefixesOf(target: Target, path: string): readonly string[] {
  const known = prefixes.get(target);
  const found = known?.get(path);
  if (found !== undefined) return found;
  const made = makePrefixes(target, path);
  if (known === undefined) prefixes.set(target, new Map([[path, made]]));
  else known.set(path, made);
  return made;
}

/** One for each of the upstream's keys. */
function makePrefixes({ upstream }: Target, path: string): readonly string[] {
  const start = startOf(upstream, 'POST', path);
  if (upstream.apiKeys.length === 0) return [start];
  return upstream.apiKeys.map((key) => start + credentialLine(upstream.kind, key));
}

function startOf(upstream: Upstream, method: string, path: string): string {
  return (
    `${method} ${upstream.basePath}${path} HTTP/1.1\r\nhost: ${upstream.origin.authority}\r\n` +
    `accept-encoding: identity\r\n${upstream.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`
  );
}
