import { isFromProxy } from '../../http/client-address.js';
import type { Call } from '../call.js';

/**
 * Where the client of a call reaches the gateway: as the config says, else as its request does, or the trusted proxy
 * that the request came through.
 * @returns a URL without a path
 */
export function ownUrl({ exchange, running }: Call): string {
  const { listen } = running.snapshot;
  if (listen.publicUrl !== null) return listen.publicUrl;
  const { host, peer, forwardedProto, forwardedHost } = exchange.head;
  const isProxied = peer !== null && running.proxies !== null && isFromProxy(peer, running.proxies);
  const scheme = isProxied ? lastOf(forwardedProto).toLowerCase() : '';
  const authority = isProxied ? lastOf(forwardedHost) : '';
  const ownScheme = listen.tls === null ? 'http' : 'https';
  return `${schemes.has(scheme) ? scheme : ownScheme}://${isAuthority(authority) ? authority : host}`;
}

const schemes: ReadonlySet<string> = new Set(['http', 'https']);

/** Of several proxies the nearest one has spoken last, and it alone is known to be trusted. */
function lastOf(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** A host with or without a port, and nothing that would end it in a URL. */
function isAuthority(text: string): boolean {
  return /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/.test(text);
}
