/** What holds for every URL that somebody else has named and that is fetched from here. */
import { createHash } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { errorCode, GatewayError } from '../errors.js';
import {
  addressBytes,
  carriedAddress,
  checkedLookup,
  isPrivateName,
  isPublicAddress,
  LookupError,
  type Resolver,
  sharesBits,
  systemResolver,
} from './address.js';
import type { EgressProxy, Origin } from './origin.js';
import type { ResponseHead } from './types.js';

export interface RemoteOptions {
  /** Hosts that are not on the public internet may be asked too. */
  readonly allowPrivate: boolean;
  /** An origin such as `https://host:8443` that may be asked wherever it is; redirects to it included. */
  readonly privateOrigin?: string | null;
  /** How that origin is reached and trusted: as its upstream is. Like any other unless given. */
  readonly ownRoute?: Route;
  /**
   * Through which all else is reached, directly unless given. It looks the names up, so that nothing is known of their
   * addresses: those that are private by themselves are refused.
   */
  readonly proxy?: EgressProxy | null;
  /** PEM text of a certificate authority to trust instead of the system's; not where there is a route of its own. */
  readonly ca?: string | null;
  /** What the operator allows and denies; nothing beyond the other members unless given. */
  readonly rules?: FetchRules;
  /** In place of the system's resolver. */
  readonly resolve?: Resolver;
  /** In place of `isPublicAddress`. */
  readonly isPublic?: (address: string) => boolean;
}

/** The way to an origin, and who is believed to be there. */
type Route = Pick<Origin, 'identity' | 'serverName' | 'ca' | 'clientCertificate' | 'proxy' | 'verify'>;

/** Where a URL leads, before its name has been looked up. */
export interface RemoteHost {
  readonly secure: boolean;
  /** Name or address; an IPv6 address is without its brackets. */
  readonly host: string;
  /** Whether `host` is an address, which has been checked. */
  readonly isAddress: boolean;
  /** Gives addresses that have all been checked, or a `LookupError`. Not for what is behind a proxy. */
  readonly lookup: LookupFunction;
  readonly route: Route;
}

/** Why a URL is not fetched, in words for those who named it. */
export class Refusal extends Error {}

const unreachable = 'it has no address that may be fetched from';
/** Of a name in text form with a dot at its end (RFC 1035 section 3.1). */
const longestHost = 254;

/**
 * Checks all of a URL that can be checked without a lookup.
 * @throws {Refusal} for another scheme, credentials, or a name, port or address that may not be asked
 */
export function checkRemote(url: URL, options: RemoteOptions): RemoteHost {
  const { allowPrivate, rules, resolve = systemResolver, isPublic = isPublicAddress } = options;
  const isOwn = url.origin === options.privateOrigin;
  const isOpen = allowPrivate || isOwn;
  const allows = (address: string): boolean =>
    (rules === undefined || !deniesAddress(rules, address)) && (isOpen || isPublic(address));
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new Refusal('only http and https URLs are fetched');
  }
  if (url.username !== '' || url.password !== '') throw new Refusal('the URL holds credentials');
  // URL keeps the brackets of an IPv6 address; sockets want it without. No lookup is made for an address.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (host.length > longestHost) throw new Refusal(unreachable);
  const isAddress = isIP(host) !== 0;
  if (rules !== undefined) {
    if (deniesHost(rules, host)) throw new Refusal(unreachable);
    if (!isOwn && !allowsPort(rules, portOf(url))) throw new Refusal('nothing is fetched from its port');
  }
  if (isAddress && !allows(host)) throw new Refusal(unreachable);
  const route = routeOf(options, isOwn);
  if (route.proxy !== null && !isOpen && !isAddress && isPrivateName(withoutEndDots(host)))
    throw new Refusal(unreachable);
  return {
    secure: url.protocol === 'https:',
    host,
    isAddress,
    lookup: checkedLookup(resolve, allows),
    route,
  };
}

function routeOf({ ownRoute, proxy = null, ca = null }: RemoteOptions, isOwn: boolean): Route {
  if (isOwn && ownRoute !== undefined) return ownRoute;
  const caHash = ca === null ? '' : createHash('sha256').update(ca).digest('hex');
  const identity = JSON.stringify([caHash, proxy?.identity ?? '']);
  return { identity, serverName: null, ca, clientCertificate: null, proxy, verify: true };
}

/**
 * The origin of a URL that was checked. It shares a connection with no upstream of the config and no other name.
 * @param address that was checked, or the URL's host where the proxy looks it up
 * @param caps most connections from one worker, and most requests that wait for one
 */
export function remoteOrigin(
  url: URL,
  { secure, host, route }: RemoteHost,
  address: string,
  caps: Pick<Origin, 'maxConnections' | 'maxWaiting'>,
): Origin {
  const port = portOf(url);
  const authority = url.host;
  return {
    identity: JSON.stringify(['reached', secure, address, port, authority, route.identity]),
    secure,
    host: address,
    port,
    authority,
    // RFC 6066 section 3: without the dot that a name may end with.
    serverName: secure ? (route.serverName ?? host.replace(/\.$/, '')) : null,
    ca: secure ? route.ca : null,
    clientCertificate: secure ? route.clientCertificate : null,
    proxy: route.proxy,
    verify: route.verify,
    ...caps,
  };
}

function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Says why a fetch failed. A name that does not resolve sounds like one that leads into a private network. */
export function refusalReason(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (error instanceof LookupError) return unreachable;
  if (/CERT|TLS|SSL|SIGNATURE|ISSUER|EPROTO/.test(errorCode(error)))
    return 'no secure connection to it can be made';
  return 'the connection to it failed';
}

/** Whether an answer of this status leads elsewhere, where it has a location (RFC 9110 section 15.4). */
export function isRedirect(status: number): boolean {
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

/** An operator's own rules for what is fetched by URL, beside those of `isPublicAddress`. */
export interface FetchRules {
  /** First and last port of each range that may be asked. */
  readonly ports: readonly (readonly [number, number])[];
  /** Addresses that are never asked: those that share their first bits with one. */
  readonly denyNetworks: readonly { readonly address: string; readonly prefix: number }[];
  /** Names as URLs have them, without a dot at their end; `*.name` for all below a name. */
  readonly denyHosts: readonly string[];
}

/** Whether a port may be asked. */
export function allowsPort({ ports }: FetchRules, port: number): boolean {
  return ports.some(([first, last]) => port >= first && port <= last);
}

/** Whether a name is denied. @param host as `URL` gives it: lower-case, in ASCII, perhaps with dots at its end */
export function deniesHost({ denyHosts }: FetchRules, host: string): boolean {
  const name = withoutEndDots(host);
  return denyHosts.some((denied) =>
    denied.startsWith('*.') ? name.endsWith(denied.slice(1)) : name === denied,
  );
}

/** A host may be as long as a client likes, and an expression for its end would look through it from each of its dots. */
function withoutEndDots(host: string): string {
  let end = host.length;
  while (host[end - 1] === '.') end--;
  return host.slice(0, end);
}

/**
 * Whether an address is denied, or an IPv4 address that it carries: mapped, by NAT64 or 6to4. A network of IPv6 that
 * lies within the mapped addresses counts for those of IPv4 as well.
 * @param address in the notation of a resolver, perhaps with a zone
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

/** Bits before the IPv4 address in one that is mapped or translated (RFC 4291 section 2.5.5.2, RFC 6052). */
const mappedBits = 96;

/** Most connections to an origin from one worker, and most requests that wait for one. */
const caps = { maxConnections: 1024, maxWaiting: 1024 };

/** Of a name with more addresses these are asked, one after the other. */
const mostAddresses = 4;

/** Where a file can be had with the upstream client. */
export interface Reached {
  /**
   * Its `host` is the address that was checked, or behind a proxy the URL's; its `authority` and `serverName` are of
   * the URL, but for the route of an upstream.
   */
  readonly origin: Origin;
  /** The same at other addresses of the name, for when there is no connection to that one. */
  readonly others: readonly Origin[];
  /** Target of the request line: path and query. */
  readonly path: string;
}

/**
 * Finds where a file is that an upstream has named by its URL, with the rules of `download`: http or https, no
 * credentials, and every address of its name on the public internet. The name is looked up once, and the connection
 * goes to an address that was checked; a proxy looks it up by itself. It never shares a connection with an upstream of
 * the config or another name.
 * @param done hears once, never before this returns; the error is `upstream_error`, says nothing of the URL, and tells
 *   a name that does not resolve from one that leads into a private network only in its `cause`
 * @returns a function that gives up; `done` is not called after it. The lookup has no deadline but the resolver's own.
 */
export function reachUrl(
  url: string,
  options: RemoteOptions,
  done: (result: Reached | GatewayError) => void,
): () => void {
  let over = false;
  const tell = (result: Reached | GatewayError): void => {
    if (over) return;
    over = true;
    done(result);
  };
  const immediate = setImmediate(() => {
    const target = targetOf(url, options);
    if (target instanceof GatewayError) {
      tell(target);
    } else if (target.remote.isAddress || target.remote.route.proxy !== null) {
      tell(reached(target, [target.remote.host]));
    } else {
      target.remote.lookup(target.remote.host, { all: true }, (error, found) => {
        if (error !== null) tell(fetchFailed(error));
        else if (typeof found !== 'string') tell(reached(target, inTurn(found)));
      });
    }
  });
  return () => {
    over = true;
    clearImmediate(immediate);
  };
}

/**
 * Gives the URL that an answer redirects to, or null where it is no redirect or leads to nothing that is a URL.
 * @param from URL of the request
 */
export function redirectTarget(from: string, head: ResponseHead): string | null {
  if (!isRedirect(head.status)) return null;
  const location = head.get('location');
  return location === null || !URL.canParse(location, from) ? null : new URL(location, from).href;
}

interface Target {
  readonly url: URL;
  readonly remote: RemoteHost;
}

function targetOf(text: string, options: RemoteOptions): Target | GatewayError {
  try {
    if (!URL.canParse(text)) throw new Refusal('the URL is not valid');
    const url = new URL(text);
    return { url, remote: checkRemote(url, options) };
  } catch (error) {
    return fetchFailed(error);
  }
}

/** Addresses of the two families in turn (RFC 8305 section 4), since a host may have no way out for one of them. */
function inTurn(addresses: readonly LookupAddress[]): readonly string[] {
  const [first] = addresses;
  const own = addresses.filter(({ family }) => family === first?.family);
  const others = addresses.filter(({ family }) => family !== first?.family);
  return Array.from({ length: Math.max(own.length, others.length) }, (_, i) => [own[i], others[i]])
    .flat()
    .flatMap((each) => each?.address ?? [])
    .slice(0, mostAddresses);
}

function reached({ url, remote }: Target, addresses: readonly string[]): Reached | GatewayError {
  const [origin, ...others] = addresses.map((address) => remoteOrigin(url, remote, address, caps));
  if (origin === undefined) return fetchFailed(new LookupError('the name has no address'));
  return { origin, others, path: url.pathname + url.search };
}

function fetchFailed(error: unknown): GatewayError {
  const reason = refusalReason(error);
  return new GatewayError('upstream_error', `The upstream named a file that cannot be fetched: ${reason}.`, {
    cause: error,
  });
}
