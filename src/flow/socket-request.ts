import type { Protocol, Upstream } from '../config/types.js';
import { credentialLine, type VendorHeaders, vendorLines } from '../dialects/upstream-lines.js';
import type { SocketRequest } from '../upstream/socket.js';
import type { Call } from './call.js';

/** What a WebSocket is asked for with. */
export interface SocketShape {
  readonly wire: Protocol;
  readonly vendor: VendorHeaders;
  /** Index of the upstream's key; 0 where it has none. */
  readonly key: number;
}

/**
 * The request for a WebSocket at an upstream.
 * @param path under the upstream's base URL, with its query
 */
export function socketRequest(
  call: Call,
  upstream: Upstream,
  path: string,
  shape: SocketShape,
): SocketRequest {
  const { timeouts, sockets } = call.running.snapshot;
  return {
    origin: upstream.origin,
    path: `${upstream.basePath}${path}`,
    headers: linesFor(call, upstream, shape),
    protocols: [],
    maxMessageBytes: sockets.messageBytes,
    connectMs: timeouts.connectMs,
    firstByteMs: timeouts.firstByteMs,
    pingMs: sockets.pingMs,
  };
}

/** Header lines, as names and values. */
function linesFor(
  call: Call,
  upstream: Upstream,
  { wire, vendor, key }: SocketShape,
): readonly (readonly [string, string])[] {
  const apiKey = upstream.apiKeys[key];
  const lines =
    (apiKey === undefined ? '' : credentialLine(upstream.kind, apiKey)) +
    vendorLines(wire, vendor, upstream) +
    call.exchange.head.forwarded;
  return [
    ...upstream.headers,
    ['x-request-id', call.exchange.id],
    ...lines
      .split('\r\n')
      .filter((line) => line !== '')
      .map((line): [string, string] => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      }),
  ];
}
