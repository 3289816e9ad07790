import type { Protocol, Upstream } from '../config/types.js';
import { credentialLine, type VendorHeaders, vendorLines } from '../dialects/upstream-lines.js';
import type { Call } from './call.js';
import { anyKey } from './upstream-head.js';

/** Header lines of an upgrade at an upstream, as names and values. */
export function socketLines(
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
