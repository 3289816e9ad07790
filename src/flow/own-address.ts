import type { Upstream } from '../config/types.js';
import { isFromProxy } from '../http/client-address.js';
import type { RemoteOptions } from '../upstream/remote-url.js';
import type { Call } from './call.js';

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

/**
 * Where a file may be that an upstream has named by its URL: at a private address only if the config says so, or on
 * the upstream itself, which is reached there anyway, and in the same way.
 */
export function fileHosts(call: Pick<Call, 'running'>, upstream: Upstream): RemoteOptions {
  const { origin } = upstream;
  const privateOrigin = `${origin.secure ? 'https' : 'http'}://${origin.authority}`;
  return { ...mediaHosts(call, upstream), privateOrigin, ownRoute: origin };
}

/** Where a file may be that a client has named, for an upstream that takes it only as bytes. */
export function mediaHosts({ running }: Pick<Call, 'running'>, { fetchPrivate }: Upstream): RemoteOptions {
  const { fetch } = running.snapshot;
  return { allowPrivate: fetchPrivate, rules: fetch, proxy: fetch.proxy };
}
