import type { LookupAddress } from 'node:dns';
import { GatewayError } from '../errors.js';
import { LookupError } from './address.js';
import type { Origin } from './origin.js';
import {
  checkRemote,
  isRedirect,
  Refusal,
  type RemoteHost,
  type RemoteOptions,
  refusalReason,
  remoteOrigin,
} from './remote-url.js';
import type { ResponseHead } from './types.js';

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
