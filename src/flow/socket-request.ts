import type { Protocol, Upstream } from '../config/types.js';
import { credentialLine, type VendorHeaders, vendorLines } from '../dialects/upstream-lines.js';
import type { SocketRequest } from '../upstream/socket.js';
import type { Call } from './call.js';
import { anyKey } from './upstream-head.js';

/**
 * The request for a WebSocket at an upstream.
 * @param path under the upstream's base URL, with its query
 */
export function socketRequest(
  call: Call,
  upstream: Upstream,
  path: string,
  { wire, vendor }: { readonly wire: Protocol; readonly vendor: VendorHeaders },
): SocketRequest {
  const { timeouts, sockets } = call.running.snapshot;
  return {
    origin: upstream.origin,
    path: `${upstream.basePath}${path}`,
    headers: linesFor(call, upstream, wire, vendor),
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
  wire: Protocol,
  vendor: VendorHeaders,
): readonly (readonly [string, string])[] {
  const key = anyKey(upstream);
  const lines =
    (key === null ? '' : credentialLine(upstream.kind, key)) +
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
