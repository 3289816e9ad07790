import {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  type us_socket_context_t,
  us_socket_local_port,
} from 'uWebSockets.js';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, guard, handFault } from '../errors.js';
import { formatAuthority } from '../wire/authority.js';
import { nextRequestNumber } from '../wire/head.js';
import { createBodyPool } from './body.js';
import { type Cors, type CorsSettings, createCors } from './cors.js';
import { Exchange, type ExchangeHost } from './exchange.js';
import { type HeaderSlots, type HeaderWords, headerSlots, readHead } from './request-head.js';
import { type SocketLimits, takeSockets } from './socket.js';
import { SweepList } from './sweep.js';
import { TurnBounds, TurnWrites, UwsResponse } from './uws-response.js';

interface ServerOptions {
  readonly words: HeaderWords;
  readonly cors: CorsSettings | null;
  /** Paths of PEM files, or null for plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Whether to read client addresses and the `x-forwarded-*` headers of proxies. */
  readonly readsPeers: boolean;
  /** Paths that accept WebSockets, and their limits. */
  readonly sockets: { readonly paths: readonly string[]; readonly limits: SocketLimits };
  readonly onRequest: (exchange: Exchange) => void;
  /** Called when the server stops listening because descriptors have run out, and when it listens again. */
  readonly onListening: (isListening: boolean) => void;
  /** Whether descriptors have run out. Checked every few seconds. */
  readonly isShort: () => boolean;
  /** Called during a drain when no worker listens any more, so that clients do not reconnect to one that drains. */
  readonly onDraining: () => void;
  /** Handles exceptions that belong to no exchange, such as those of the server's timers. */
  readonly onFault: (where: FaultPlace, fault: unknown) => void;
}

/** uWS closes a socket that makes no progress for eight to twelve seconds, so sweeps run well within that. */
const sweepMs = 4000;
/** Bytes of unused buffers that are kept for request bodies. */
const pooledBytes = 64 * 1024 * 1024;
/**
 * A turn of the event loop this short has accepted no connection and no request; and how long to wait for such a turn.
 */
const quietMs = 0.02;
const quietPatienceMs = 200;
/**
 * Time from the end of listening to the first response that closes its connection, if nothing is known of other
 * workers.
 */
const drainDelayMs = 100;
/** How long requests are still served on connections that were idle when the drain began. */
const drainGraceMs = 300;

/** The server cannot listen. The message names the address, or the files at fault. */
export class ListenError extends Error {}

/** Creates an app for HTTPS. uWebSockets.js reads the certificate and key files at this moment. */
function secureApp({ cert, key }: NonNullable<ServerOptions['tls']>): TemplatedApp {
  try {
    return SSLApp({ cert_file_name: cert, key_file_name: key });
  } catch {
    throw new ListenError(`the certificate in ${cert} and the key in ${key} cannot be used together`);
  }
}

/** Possible reasons why an address is refused, since uWebSockets.js does not report the actual one. */
const whyNot = 'another process has it, or it is no address of this machine, or this user may not';

/** A server on uWebSockets.js that turns every request into an `Exchange`. */
export class Server {
  readonly #options: ServerOptions;
  readonly #host: ExchangeHost = {
    sweepList: new SweepList(),
    draining: false,
    open: 0,
    served: 0,
    onIdle: null,
    bodies: createBodyPool(pooledBytes),
  };
  readonly #turnBounds = new TurnBounds();
  readonly #turnWrites = new TurnWrites();
  readonly #app: TemplatedApp;
  readonly #sweepTimer: NodeJS.Timeout;
  #slots: HeaderSlots;
  #readsPeers: boolean;
  #cors: Cors | null;
  #listening: us_listen_socket | null = null;
  /** Address to listen on again; null before the first time, and when the server is not to listen any more. */
  #place: { readonly address: string; readonly port: number } | null = null;
  /** The exchange of the request that is being accepted. */
  #taken: Exchange | null = null;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { words, readsPeers, cors, tls, sockets } = options;
    this.#slots = headerSlots(words, readsPeers);
    this.#readsPeers = readsPeers;
    this.#cors = createCors(cors);
    this.#app = tls === null ? App() : secureApp(tls);
    takeSockets(this.#app, sockets.paths, sockets.limits, (response, request, context) =>
      this.#takeGuarded(response, request, context),
    );
    this.#app.any('/*', (response, request) => this.#takeGuarded(response, request, null));
    const sweep = (): void => {
      this.#host.sweepList.sweep(performance.now());
      this.#host.bodies.trim();
      this.#listenAsPossible();
    };
    this.#sweepTimer = setInterval(guard('timer', options, sweep), sweepMs);
    this.#sweepTimer.unref();
  }

  /** @returns the port, which matters if 0 was requested. Rejects if the address is in use. */
  listen(address: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#app.listen(address, port, (socket) => {
        if (socket) {
          this.#listening = socket;
          const own = us_socket_local_port(socket);
          this.#place = { address, port: own };
          resolve(own);
        } else reject(new ListenError(`${formatAuthority(address, port)} cannot be listened on; ${whyNot}`));
      });
    });
  }

  /** Applies new settings to requests from now on. */
  set({ words, readsPeers, cors }: Pick<ServerOptions, 'words' | 'cors' | 'readsPeers'>): void {
    this.#slots = headerSlots(words, readsPeers);
    this.#readsPeers = readsPeers;
    this.#cors = createCors(cors);
  }

  /** Returns the number of open exchanges and WebSockets. */
  open(): number {
    return this.#host.open;
  }

  /** Returns the number of requests since the start. */
  served(): number {
    return this.#host.served;
  }

  /** Stops accepting connections; open ones are still served. Resolves when the socket is closed. */
  async stopListening(): Promise<void> {
    if (this.#listening !== null) await quietTurn();
    // The server may have been closed in the meantime.
    this.#closeListener();
  }

  /**
   * Stops accepting connections, and closes each connection after its response. Resolves when the last exchange has
   * ended.
   * @param graceMs how long requests on idle connections are still served after that. Default: a moment
   */
  async drain(graceMs = drainGraceMs): Promise<void> {
    // Clients reconnect after `connection: close`. If another worker were still about to stop listening, they could
    // land in its queue and be reset. A caller that has stopped listening beforehand has waited for all workers.
    const delayMs = this.#listening === null ? 0 : drainDelayMs;
    await this.stopListening();
    const host = this.#host;
    return new Promise((resolve) => {
      let quiet: NodeJS.Timeout | undefined;
      let last: NodeJS.Immediate | undefined;
      const resolveWhenQuiet = () => {
        clearTimeout(quiet);
        clearImmediate(last);
        quiet = setTimeout(() => {
          // Sockets are read between the two, so requests that arrived before a late timer are still served.
          last = setImmediate(() => {
            if (host.open === 0) resolve();
          });
        }, graceMs);
      };
      setTimeout(() => {
        host.draining = true;
        host.onIdle = resolveWhenQuiet;
        this.#options.onDraining();
        if (host.open === 0) resolveWhenQuiet();
      }, delayMs);
    });
  }

  /** Closes all connections immediately. */
  close(): void {
    clearInterval(this.#sweepTimer);
    this.#closeListener();
    this.#turnWrites.flush();
    this.#app.close();
  }

  #takeGuarded(response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null): void {
    this.#taken = null;
    this.#turnBounds.isReading = true;
    try {
      this.#take(response, request, context);
    } catch (fault) {
      if (this.#taken !== null) handFault(this.#taken, 'request', fault);
      else {
        this.#options.onFault('request', fault);
        refuseBare(response);
      }
    } finally {
      this.#turnBounds.isReading = false;
    }
  }

  #take(response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null): void {
    const cors = this.#cors;
    const head = readHead(request, this.#slots);
    if (this.#readsPeers) head.peer = response.getRemoteAddress();
    if (cors !== null && head.origin !== '') head.answerLines = cors.answerLines(head.origin);
    const exchange = new Exchange(
      new UwsResponse(response, this.#turnBounds, this.#turnWrites, head.isToldToClose),
      request.getCaseSensitiveMethod(),
      request.getUrl(),
      head,
      nextRequestNumber(),
      this.#host,
    );
    this.#taken = exchange;
    // One whose framing cannot be trusted is refused below like any other request.
    if (cors !== null && head.framingFault === null && isPreflight(exchange)) {
      exchange.respondEmpty(204, cors.preflightLines(head.requestedHeaders), null);
      return;
    }
    if (context !== null) exchange.offer = { response, context, host: this.#host };
    const { onRequest } = this.#options;
    // While a response is pending, uWS closes a connection on which another request begins. Bytes behind a request of
    // ambiguous length are therefore never read as a request.
    if (head.framingFault === null) onRequest(exchange);
    else setImmediate(guard('request', exchange, () => onRequest(exchange)));
  }

  /** Stops listening while descriptors have run out. */
  #listenAsPossible(): void {
    const { isShort, onListening } = this.#options;
    const place = this.#place;
    if (place === null || isShort() === (this.#listening === null)) return;
    if (this.#listening === null) {
      this.#app.listen(place.address, place.port, (socket) => {
        if (!socket) return;
        this.#listening = socket;
        onListening(true);
      });
      return;
    }
    this.#closeListener();
    this.#place = place;
    onListening(false);
  }

  /** Closes the listening socket once: uWS frees it, also when the server ends. */
  #closeListener(): void {
    if (this.#listening !== null) us_listen_socket_close(this.#listening);
    this.#listening = null;
    this.#place = null;
  }
}

/**
 * Waits for a nearly idle turn of the event loop. Each turn begins by accepting every connection in the listener's
 * queue. The system resets connections that arrive between that and the close of the socket, so an idle turn loses the
 * fewest.
 */
function quietTurn(): Promise<void> {
  return new Promise((resolve) => {
    const patienceEnds = performance.now() + quietPatienceMs;
    let turnedAt = 0;
    const turn = (): void => {
      const now = performance.now();
      const isQuiet = now - turnedAt < quietMs;
      turnedAt = now;
      if (isQuiet || now > patienceEnds) resolve();
      else setImmediate(turn);
    };
    setImmediate(turn);
  });
}

/** Responds to a request without an exchange, since uWS requires a response or an abort handler. */
function refuseBare(response: HttpResponse): void {
  try {
    response.cork(() => response.writeStatus('500 Internal Server Error').end('', true));
  } catch {
    // A response was sent before the exception, or the client has disconnected.
  }
}

/** Whether a request is a CORS preflight, which carries no credentials. */
function isPreflight({ method, head }: Exchange): boolean {
  return method === 'OPTIONS' && head.origin !== '' && head.requestedMethod !== '';
}
