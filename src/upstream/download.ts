import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, GatewayError, type Guarded, guard, handFault } from '../errors.js';
import { ByteBlocks } from '../wire/byte-blocks.js';
import type { Dialer } from './dial.js';
import { LeastRate, type RateBound } from './least-rate.js';
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
import { connectSecure, createSecureProfiles, secureTunnel } from './secure.js';
import { openTunnel } from './tunnel.js';

const maxRedirects = 3;
/** Memory for the file is reserved in steps of this many bytes. */
const holdStep = 64 * 1024;
const lookEveryMs = 1000;

export interface DownloadOptions extends RemoteOptions {
  /** Larger files are refused. */
  readonly maxBytes: number;
  /** Time limit for the whole download, from the lookup of names through redirects to the last byte. */
  readonly timeoutMs: number;
  /** The owner of the download. An exception is reported to it, and `done` is not called. */
  readonly owner: Guarded;
  /** The slowest transfer that is accepted. A slower one is given up. */
  readonly rate: RateBound;
  /**
   * Called before the file takes up this many bytes of memory in total.
   * @throws {GatewayError} when there is no room for them, which ends the download
   */
  readonly hold: (bytes: number) => void;
  /** The worker's dialer, for connections to proxies. */
  readonly dialer: Dialer;
}

/** Each file gets a connection of its own, which is closed afterwards. */
const caps = { maxConnections: 1, maxWaiting: 0 };

type Connected = (error: Error | null, socket: Socket) => void;

export interface Downloaded {
  readonly bytes: Buffer;
  /** The `content-type` without its parameters, lower-case, or null. */
  readonly mediaType: string | null;
}

/**
 * Fetches a file from a URL that a caller gave. The connection goes to the exact address that was checked, and each
 * redirect (at most 3) is checked again. Error messages are written for the caller: they contain no address, and do not
 * distinguish a name that does not resolve from one that leads into a private network.
 * @param done called once, never before this returns; the error is `invalid_value` without a `param`
 * @returns a function that cancels the download; `done` is not called after it
 */
export function download(
  url: string,
  options: DownloadOptions,
  done: (result: Downloaded | GatewayError) => void,
): () => void {
  const transfer = new Transfer(url, options, done);
  transfer.start();
  return () => transfer.end();
}

class Transfer implements Guarded {
  readonly #first: URL | null;
  readonly #options: DownloadOptions;
  readonly #done: (result: Downloaded | GatewayError) => void;
  readonly #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | null = null;
  #request: ClientRequest | null = null;
  /** The connection to a proxy. */
  #tunnel: Socket | null = null;
  #redirects = 0;
  #over = false;
  /** Bytes received. */
  #size = 0;
  readonly #looks: NodeJS.Timeout;
  /** Set once the head of the final answer has arrived. */
  #rate: LeastRate | null = null;

  constructor(url: string, options: DownloadOptions, done: (result: Downloaded | GatewayError) => void) {
    this.#first = URL.canParse(url) ? new URL(url) : null;
    this.#options = options;
    this.#done = done;
    this.#timer = setTimeout(
      this.#guard(() => this.#fail(new Refusal('it took too long'))),
      options.timeoutMs,
    );
    this.#looks = setInterval(
      this.#guard(() => this.#look()),
      lookEveryMs,
    );
  }

  /** Starts in the next turn of the event loop, so that no failure is reported before `download` returns. */
  start(): void {
    this.#immediate = setImmediate(
      this.#guard(() => {
        if (this.#first === null) this.#fail(new Refusal('the URL is not valid'));
        else this.#ask(this.#first);
      }),
    );
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.end();
    handFault(this.#options.owner, where, fault);
  }

  #guard<Arguments extends unknown[]>(callback: (...args: Arguments) => void): (...args: Arguments) => void {
    return guard('upstream', this, callback);
  }

  /** Frees everything. Nothing is reported after this. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearInterval(this.#looks);
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#drop();
  }

  /** Destroys the request and its tunnel. */
  #drop(): void {
    this.#request?.destroy();
    this.#request = null;
    this.#tunnel?.destroy();
    this.#tunnel = null;
  }

  #ask(url: URL): void {
    try {
      const request = this.#open(url);
      this.#request = request;
      // A request that was dropped for a redirect may still fail, which no longer matters.
      const isCurrent = (): boolean => this.#request === request;
      const onError = (error: Error): void => {
        if (isCurrent()) this.#fail(error);
      };
      const onResponse = (response: IncomingMessage): void => {
        if (isCurrent()) this.#onResponse(url, response);
      };
      request.on('error', this.#guard(onError));
      request.on('response', this.#guard(onResponse));
      request.end();
    } catch (error) {
      this.#fail(error);
    }
  }

  #open(url: URL): ClientRequest {
    const remote = checkRemote(url, this.#options);
    const origin = remoteOrigin(url, remote, remote.host, caps);
    return request({
      path: url.pathname + url.search,
      createConnection: (_options, connected) => this.#connect(origin, remote.lookup, connected as Connected),
      headers: {
        host: url.host,
        accept: '*/*',
        'accept-encoding': 'identity',
        'user-agent': 'model-gateway',
      },
    });
  }

  /** @returns the connection, or undefined if `connected` receives it later */
  #connect(origin: Origin, lookup: RemoteHost['lookup'], connected: Connected): Socket | undefined {
    const { host, port, proxy, secure } = origin;
    // A separate store: names that clients choose must not displace the session tickets of upstreams.
    const secureProfiles = createSecureProfiles();
    if (proxy === null) {
      return secure
        ? connectSecure(origin, { names: { lookup }, secureProfiles })
        : connect({ host, port, lookup, noDelay: true });
    }
    this.#tunnel = openTunnel(proxy, origin, this.#options.dialer, {
      onTunnel(tunnel) {
        connected(null, secure ? secureTunnel(tunnel, origin, secureProfiles) : tunnel);
        // A tunnel is handed over paused.
        if (!secure) tunnel.resume();
      },
      onTunnelFailed: (detail) => this.#fail(new Error(detail)),
      onFault: (where, fault) => this.onFault(where, fault),
    });
    return undefined;
  }

  #onResponse(url: URL, response: IncomingMessage): void {
    const { headers, statusCode = 0 } = response;
    if (isRedirect(statusCode) && headers.location !== undefined) {
      this.#redirect(url, headers.location);
      return;
    }
    const coding = headers['content-encoding'];
    const length = Number(headers['content-length'] ?? 0);
    if (statusCode !== 200) {
      this.#fail(new Refusal(`the answer has the status ${statusCode}`));
    } else if (coding !== undefined && coding.toLowerCase() !== 'identity') {
      this.#fail(new Refusal('the answer is compressed'));
    } else if (length > this.#options.maxBytes) {
      this.#fail(this.#tooLarge());
    } else {
      this.#read(response);
    }
  }

  #redirect(from: URL, location: string): void {
    this.#drop();
    if (++this.#redirects > maxRedirects) this.#fail(new Refusal('there are too many redirects'));
    else if (!URL.canParse(location, from.href)) this.#fail(new Refusal('it redirects to no valid URL'));
    else this.#ask(new URL(location, from.href));
  }

  #read(response: IncomingMessage): void {
    const blocks = new ByteBlocks();
    let held = 0;
    this.#rate = new LeastRate(performance.now());
    const onData = (piece: Buffer): void => {
      this.#size += piece.length;
      if (this.#size > this.#options.maxBytes) {
        this.#fail(this.#tooLarge());
        return;
      }
      if (this.#size > held) {
        held = Math.min(this.#options.maxBytes, this.#size + holdStep);
        if (!this.#hold(held)) return;
      }
      blocks.add(piece);
    };
    const onEnd = (): void => {
      // Twice the size: the blocks stay in memory until they have been concatenated.
      if (!response.complete || this.#over || !this.#hold(2 * this.#size)) return;
      this.#finish({ bytes: Buffer.concat(blocks.pieces(), this.#size), mediaType: mediaTypeOf(response) });
    };
    response.on('data', this.#guard(onData));
    response.on(
      'error',
      this.#guard((error: Error) => this.#fail(error)),
    );
    response.on('end', this.#guard(onEnd));
  }

  /** @returns false when there is no room, which has ended the download */
  #hold(bytes: number): boolean {
    if (this.#over) return false;
    try {
      this.#options.hold(bytes);
      return true;
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault;
      this.#finish(fault);
      return false;
    }
  }

  /** Checks the rate, about once a second. */
  #look(): void {
    if (this.#rate?.isTooSlow(performance.now(), this.#size, this.#options.rate))
      this.#fail(new Refusal('it comes too slowly'));
  }

  #tooLarge(): Refusal {
    return new Refusal(`it is larger than ${this.#options.maxBytes} bytes`);
  }

  #fail(error: unknown): void {
    const what =
      this.#first === null ? 'The file' : `The file at ${this.#first.host || this.#first.protocol}`;
    this.#finish(
      new GatewayError('invalid_value', `${what} cannot be fetched: ${refusalReason(error)}.`, {
        cause: error,
      }),
    );
  }

  #finish(result: Downloaded | GatewayError): void {
    if (this.#over) return;
    this.end();
    this.#done(result);
  }
}

function mediaTypeOf(response: IncomingMessage): string | null {
  const type = (response.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return type === '' ? null : type;
}
