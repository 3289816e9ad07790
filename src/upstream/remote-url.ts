/** Rules for every URL that a caller or an upstream supplied and that the gateway fetches. */
import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import {
  addressBytes,
  carriedAddress,
  isPrivateName,
  isPublicAddress,
  type Resolver,
  sharesBits,
  systemResolver,
} from './address.js';
import type { EgressProxy, Origin } from './origin.js';
import type { ResponseHead } from './types.js';

export interface RemoteOptions {
  /** Whether hosts that are not on the public internet are allowed as well. */
  readonly allowPrivate: boolean;
  /** Whether a client has named the file: no connection to its server is kept. */
  readonly isByClient: boolean;
  /** An origin such as `https://host:8443` that is allowed at any address, also for redirects. */
  readonly privateOrigin?: string | null;
  /** How `privateOrigin` is reached and verified: like its upstream. Default: like any other origin. */
  readonly ownRoute?: Route;
  /**
   * Proxy for all other origins; null for direct connections. The proxy resolves names, so that their addresses are
   * unknown here: only names that are private by themselves are refused.
   */
  readonly proxy: EgressProxy | null;
  /** Further rules of the operator. */
  readonly rules: FetchRules;
  /** Replaces the system's resolver. */
  readonly resolve?: Resolver;
  /** Replaces `isPublicAddress`. */
  readonly isPublic?: (address: string) => boolean;
}

/** How an origin is reached and verified. */
type Route = Pick<Origin, 'identity' | 'serverName' | 'ca' | 'clientCertificate' | 'proxy' | 'verify'>;

/** The server of a URL, before its name has been resolved. */
interface RemoteHost {
  readonly url: URL;
  /** Name or address; an IPv6 address has no brackets. */
  readonly host: string;
  /** Whether `host` is an address, which has been checked. */
  readonly isAddress: boolean;
  /** Whether an address of the name may be used. Not to be used with a proxy. */
  readonly allows: (address: string) => boolean;
  readonly route: Route;
}

/**
 * Why a file is not fetched. The message may be shown to whoever supplied the URL: it is the same for names that do not
 * resolve and names of a private network, and only the cause distinguishes them.
 */
export class Refusal extends Error {}

const unreachable = 'it has no address that may be fetched from';
/** Maximum length of a name as text, with a trailing dot (RFC 1035 section 3.1). */
const longestHost = 254;

/**
 * Checks everything about a URL that can be checked without a lookup.
 * @throws {Refusal} for another scheme, credentials, or a name, port or address that is not allowed
 */
function checkRemote(url: URL, options: RemoteOptions): RemoteHost {
  const { allowPrivate, rules, isPublic = isPublicAddress } = options;
  const isOwn = url.origin === options.privateOrigin;
  const isOpen = allowPrivate || isOwn;
  const allows = (address: string): boolean =>
    !deniesAddress(rules, address) && (isOpen || isPublic(address));
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new Refusal('only http and https URLs are fetched');
  }
  if (url.username !== '' || url.password !== '') throw new Refusal('the URL holds credentials');
  // `URL` keeps the brackets of an IPv6 address; sockets expect none. No lookup happens for an address.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (host.length > longestHost) throw new Refusal(unreachable);
  const isAddress = isIP(host) !== 0;
  if (deniesHost(rules, host)) throw new Refusal(unreachable);
  if (!isOwn && !allowsPort(rules, portOf(url))) throw new Refusal('nothing is fetched from its port');
  if (isAddress && !allows(host)) throw new Refusal(unreachable);
  const route = routeOf(options, isOwn);
  if (route.proxy !== null && !isOpen && !isAddress && isPrivateName(withoutEndDots(host)))
    throw new Refusal(unreachable);
  return { url, host, isAddress, allows, route };
}

function routeOf({ ownRoute, proxy }: RemoteOptions, isOwn: boolean): Route {
  if (isOwn && ownRoute !== undefined) return ownRoute;
  return {
    identity: proxy?.identity ?? '',
    serverName: null,
    ca: null,
    clientCertificate: null,
    proxy,
    verify: true,
  };
}

/**
 * Returns the origin of a checked URL. It shares no connection with upstreams of the config or with other names.
 * @param address the checked address, or the URL's host if a proxy resolves it
 */
function remoteOrigin({ url, host, route }: RemoteHost, address: string, isKept: boolean): Origin {
  const secure = url.protocol === 'https:';
  const port = portOf(url);
  const authority = url.host;
  return {
    identity: JSON.stringify(['reached', secure, address, port, authority, route.identity, isKept]),
    secure,
    host: address,
    port,
    authority,
    // RFC 6066 section 3: without a trailing dot.
    serverName: secure ? (route.serverName ?? host.replace(/\.$/, '')) : null,
    ca: secure ? route.ca : null,
    clientCertificate: secure ? route.clientCertificate : null,
    proxy: route.proxy,
    verify: route.verify,
    isKept,
    ...caps,
  };
}

function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Whether an answer with this status is a redirect if it has a location (RFC 9110 section 15.4). */
function isRedirect(status: number): boolean {
  switch (status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return true;
    default:
      return false;
  }
}

/** An operator's rules for fetching URLs, in addition to `isPublicAddress`. */
export interface FetchRules {
  /** First and last port of each allowed range. */
  readonly ports: readonly (readonly [number, number])[];
  /** Denied networks: an address is denied if it shares the first `prefix` bits. */
  readonly denyNetworks: readonly { readonly address: string; readonly prefix: number }[];
  /** Denied names, as in URLs and without a trailing dot; `*.name` for all names below a name. */
  readonly denyHosts: readonly string[];
}

/** Whether a port is allowed. */
export function allowsPort({ ports }: FetchRules, port: number): boolean {
  return ports.some(([first, last]) => port >= first && port <= last);
}

/** Whether a name is denied. @param host as in `URL`: lower-case, in ASCII, perhaps with trailing dots */
export function deniesHost({ denyHosts }: FetchRules, host: string): boolean {
  const name = withoutEndDots(host);
  return denyHosts.some((denied) =>
    denied.startsWith('*.') ? name.endsWith(denied.slice(1)) : name === denied,
  );
}

/**
 * Removes trailing dots. A regular expression would scan a host, whose length clients choose, from each of its dots.
 */
function withoutEndDots(host: string): string {
  let end = host.length;
  while (host[end - 1] === '.') end--;
  return host.slice(0, end);
}

/**
 * Whether an address is denied, or an IPv4 address within it (mapped, NAT64 or 6to4). An IPv6 network within the mapped
 * addresses also applies to IPv4 addresses.
 * @param address in a resolver's notation, perhaps with a zone
 */
export function deniesAddress({ denyNetworks }: FetchRules, address: string): boolean {
  if (denyNetworks.length === 0) return false;
  const bare = address.replace(/%.*$/, '');
  if (isIP(bare) === 0) return true;
  const bytes = addressBytes(bare);
  const carried = bytes.length === 4 ? bytes : carriedAddress(bytes);
  return denyNetworks.some(({ address: network, prefix }) => {
    const block = addressBytes(network);
    if (block.length === bytes.length && sharesBits(bytes, block, prefix)) return true;
    if (carried === null) return false;
    if (block.length === 4) return sharesBits(carried, block, prefix);
    const inner = prefix >= mappedBits ? carriedAddress(block) : null;
    return inner !== null && sharesBits(carried, inner, prefix - mappedBits);
  });
}

/** Number of bits before the IPv4 address in a mapped or translated address (RFC 4291 section 2.5.5.2, RFC 6052). */
const mappedBits = 96;

/** Maximum number of connections to an origin from one worker, and of requests that wait for one. */
const caps = { maxConnections: 1024, maxWaiting: 1024 };

/** Maximum number of addresses of a name that are tried, one after the other. */
const mostAddresses = 4;

/** Where the upstream client can fetch a file. */
export interface Reached {
  /**
   * `host` is the checked address, or the URL's host with a proxy. `authority` is from the URL, and `serverName` as
   * well, unless the route of an upstream sets it.
   */
  readonly origin: Origin;
  /** The same origin at other addresses of the name, to try if `origin` cannot be connected. */
  readonly others: readonly Origin[];
  /** Target of the request line: path and query. */
  readonly path: string;
}

/**
 * Resolves a file's URL: http or https, no credentials, and every address of its name on the public internet. The name is
 * looked up once, and the connection goes to a checked address. A proxy does its own lookup. The file never shares a
 * connection with an upstream of the config or another name.
 * @param done called once, never before this returns
 * @returns a function that cancels; `done` is not called after it. The lookup has no deadline other than the resolver's
 */
export function reachUrl(
  url: string,
  options: RemoteOptions,
  done: (result: Reached | Refusal) => void,
): () => void {
  let over = false;
  const finish = (result: Reached | Refusal): void => {
    if (over) return;
    over = true;
    done(result);
  };
  const isKept = !options.isByClient;
  const immediate = setImmediate(() => {
    const remote = hostOf(url, options);
    if (remote instanceof Refusal) {
      finish(remote);
    } else if (remote.isAddress || remote.route.proxy !== null) {
      finish(reached(remote, [remote.host], isKept));
    } else {
      const resolve = options.resolve ?? systemResolver;
      resolve(remote.host, { all: true }, (cause, found) => {
        if (cause !== null || found.length === 0) finish(new Refusal(unreachable, { cause }));
        else if (found.every(({ address }) => remote.allows(address)))
          finish(reached(remote, inTurn(found), isKept));
        else finish(new Refusal(unreachable, { cause: 'an address of the name may not be used' }));
      });
    }
  });
  return () => {
    over = true;
    clearImmediate(immediate);
  };
}

/**
 * Returns the URL that an answer redirects to, or null if it is no redirect or has no valid location.
 * @param from URL of the request
 */
export function redirectTarget(from: string, head: ResponseHead): string | null {
  if (!isRedirect(head.status)) return null;
  const location = head.get('location');
  return location === null || !URL.canParse(location, from) ? null : new URL(location, from).href;
}

function hostOf(url: string, options: RemoteOptions): RemoteHost | Refusal {
  if (!URL.canParse(url)) return new Refusal('the URL is not valid');
  try {
    return checkRemote(new URL(url), options);
  } catch (fault) {
    return fault instanceof Refusal ? fault : new Refusal(unreachable, { cause: fault });
  }
}

/** Alternates between the two address families (RFC 8305 section 4), since a host may lack connectivity for one. */
function inTurn(addresses: readonly LookupAddress[]): readonly string[] {
  const [first] = addresses;
  const own = addresses.filter(({ family }) => family === first?.family);
  const others = addresses.filter(({ family }) => family !== first?.family);
  return Array.from({ length: Math.max(own.length, others.length) }, (_, i) => [own[i], others[i]])
    .flat()
    .flatMap((each) => each?.address ?? [])
    .slice(0, mostAddresses);
}

function reached(remote: RemoteHost, addresses: readonly string[], isKept: boolean): Reached | Refusal {
  const [origin, ...others] = addresses.map((address) => remoteOrigin(remote, address, isKept));
  if (origin === undefined) return new Refusal(unreachable);
  return { origin, others, path: remote.url.pathname + remote.url.search };
}
