import { createHash } from 'node:crypto';
import type { Origin } from '../upstream/origin.js';

export interface OriginOptions {
  readonly ca: string | null;
  readonly verify: boolean;
  readonly serverName: string | null;
  readonly maxConnections: number;
  readonly maxWaiting: number;
}

/**
 * Makes the origin of a base URL. Its identity holds all that makes one connection as good as another: scheme, host,
 * port, and for TLS the name that is asked for, the authority that is trusted and whether anything is checked. What
 * differs in any of these never shares a connection.
 * @param baseUrl an http or https URL
 */
export function createOrigin(baseUrl: string, options: OriginOptions): Origin {
  const url = new URL(baseUrl);
  const secure = url.protocol === 'https:';
  // URL keeps the brackets of an IPv6 address; sockets and certificates want it without.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const serverName = secure ? (options.serverName ?? host) : null;
  const ca = secure ? options.ca : null;
  const verify = secure ? options.verify : true;
  const caHash = ca === null ? '' : createHash('sha256').update(ca).digest('hex');
  return {
    identity: JSON.stringify([secure ? 'https' : 'http', host, port, serverName, caHash, verify]),
    secure,
    host,
    port,
    authority: url.host,
    serverName,
    ca,
    verify,
    maxConnections: options.maxConnections,
    maxWaiting: options.maxWaiting,
  };
}
