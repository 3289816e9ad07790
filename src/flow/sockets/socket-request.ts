import type { Protocol, Target } from '../../config/types.js';
import { type VendorHeaders, vendorLines } from '../../protocols/credentials/credentials.js';
import type { SocketRequest } from '../../upstream/socket.js';
import { fieldsOf } from '../../wire/head.js';
import { withQuery } from '../../wire/query.js';
import type { Call } from '../call.js';
import { socketLines } from '../prepare.js';

/** What a WebSocket is asked for with. */
interface SocketShape {
  readonly protocol: Protocol;
  readonly vendor: VendorHeaders;
  /** Index of the upstream's key; 0 where it has none. */
  readonly key: number;
}

/**
 * The request for a WebSocket at a target.
 * @param path under the upstream's base URL, with its query
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function socketRequest(
  call: Call,
  target: Target,
  path: string,
  { protocol, vendor, key }: SocketShape,
): SocketRequest {
  const { timeouts, sockets } = call.running.snapshot;
  const { upstream } = target;
  const lines = vendorLines(protocol, vendor, target.upstream.kind, target);
  return {
    origin: upstream.origin,
    path: withQuery(upstream.basePath + path, upstream.baseQuery),
    headers: fieldsOf(socketLines(call, target, upstream.apiKeys[key] ?? null, protocol, lines)),
    protocols: [],
    maxMessageBytes: sockets.messageBytes,
    connectMs: timeouts.connectMs,
    firstByteMs: timeouts.firstByteMs,
    pingMs: sockets.pingMs,
  };
}
