import type { Target } from '../config/types.js';
import type { Call } from './call.js';

/** What every request to a target begins with, made once for each path and key. */
const prefixes = new WeakMap<Target, Map<string, readonly string[]>>();

/** The head of the request to an upstream: without framing headers and the empty line, which the client adds. */
export function upstreamHead(call: Call, target: Target, path: string): string {
  const { head, id } = call.exchange;
  const choices = prefixesOf(target, path);
  const prefix = choices.length === 1 ? choices[0] : choices[Math.floor(Math.random() * choices.length)];
  return `${prefix}content-type: application/json\r\nx-request-id: ${id}\r\n${head.forwarded}`;
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
  const start =
    `POST ${upstream.basePath}${path} HTTP/1.1\r\nhost: ${upstream.origin.authority}\r\n` +
    `accept-encoding: identity\r\n${upstream.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
  if (upstream.apiKeys.length === 0) return [start];
  return upstream.apiKeys.map((key) => `${start}authorization: Bearer ${key}\r\n`);
}
