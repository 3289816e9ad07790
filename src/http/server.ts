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
import { AtOnce, TurnWrites, UwsResponse } from './uws-response.js';

interface ServerOptions {
  readonly words: HeaderWords;
  readonly cors: CorsSettings | null;
  /** Paths of PEM files, or null for plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** The addresses of clients are wanted, and what proxies say of them. */
  readonly readsPeers: boolean;
  /** Where requests for a WebSocket are taken. */
  readonly sockets: { readonly paths: readonly string[]; readonly limits: SocketLimits };
  readonly onRequest: (exchange: Exchange) => void;
  /** Descriptors have run out: nothing listens until some are free again, and then it does. */
  readonly onListening?: (isListening: boolean) => void;
  /** Whether descriptors have run out, asked every few seconds. */
  readonly isShort?: () => boolean;
  /** In a drain: nothing listens any more, here and at the other workers, so who is told to leave comes back to none. */
  readonly onDraining?: () => void;
  /** Hears of a fault that belongs to no exchange: one before there is any, and those of the server's own timers. */
  readonly onFault: (where: FaultPlace, fault: unknown) => void;
}

/** uWS drops a socket that makes no progress after eight to twelve seconds; well under that. */
const sweepMs = 4000;
/** Buffers for request bodies that may wait for their next use. */
const pooledBytes = 64 * 1024 * 1024;
/** A turn of the event loop that is as short as this took no connection and no request; and how long one is waited for. */
const quietMs = 0.02;
const quietPatienceMs = 200;
/** From the end of listening to the first answer that ends its connection, where nobody knows of the other workers. */
const drainDelayMs = 100;
/** Requests on connections that were idle when the drain began are still served for so long. */
const drainGraceMs = 300;

/** It cannot listen, by no fault of its own; the message says where, or which files are in the way. */
export class ListenError extends Error {}

/** A worker that starts reads the files as they are at that moment. */
function secureApp({ cert, key }: NonNullable<ServerOptions['tls']>): TemplatedApp {
  try {
    return SSLApp({ cert_file_name: cert, key_file_name: key });
  } catch {
    throw new ListenError(`the certificate in ${cert} and the key in ${key} cannot be used together`);
  }
}

/** uWebSockets.js does not tell which. */
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
  readonly #atOnce = new AtOnce();
  readonly #turnWrites = new TurnWrites();
  readonly #app: TemplatedApp;
  readonly #sweepTimer: NodeJS.Timeout;
  #slots: HeaderSlots;
  #readsPeers: boolean;
  #cors: Cors | null;
  #listening: us_listen_socket | null = null;
  /** Where to listen again; null where nothing has listened yet, and when it is not to any more. */
  #place: { readonly address: string; readonly port: number } | null = null;
  /** Of the request that is being taken. */
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

  /** @returns the port, which differs from the one asked for when that was 0. Rejects when it is taken. */
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

  /** Puts other settings in force for the requests to come. */
  set({ words, readsPeers, cors }: Pick<ServerOptions, 'words' | 'cors' | 'readsPeers'>): void {
    this.#slots = headerSlots(words, readsPeers);
    this.#readsPeers = readsPeers;
    this.#cors = createCors(cors);
  }

  /** Answers that have not ended. */
  open(): number {
    return this.#host.open;
  }

  /** Requests since the start. */
  served(): number {
    return this.#host.served;
  }

  /** Takes no more connections, and serves on those that there are. Resolves when nothing listens any more. */
  async stopListening(): Promise<void> {
    if (this.#listening !== null) await quietTurn();
    // The server may have been closed meanwhile.
    this.#closeListener();
  }

  /**
   * Stops accepting; from now on answers end their connections; resolves when the last one open has ended.
   * @param graceMs for so long after it what still comes on idle connections is served; a moment unless given
   */
  async drain(graceMs = drainGraceMs): Promise<void> {
    // Clients that are told to close connect anew: not before every worker has ceased to listen, or they would wait in
    // the queue of one that closes it in their face. Who has told this one to cease before has waited for all.
    const delayMs = this.#listening === null ? 0 : drainDelayMs;
    await this.stopListening();
    const host = this.#host;
    return new Promise((resolve) => {
      let quiet: NodeJS.Timeout | undefined;
      let last: NodeJS.Immediate | undefined;
      const settle = () => {
        clearTimeout(quiet);
        clearImmediate(last);
        quiet = setTimeout(() => {
          // Sockets are read between the two: on a busy machine a timer is late, and what has come by then is served.
          last = setImmediate(() => {
            if (host.open === 0) resolve();
          });
        }, graceMs);
      };
      setTimeout(() => {
        host.draining = true;
        host.onIdle = settle;
        this.#options.onDraining?.();
        if (host.open === 0) settle();
      }, delayMs);
    });
  }

  /** Closes everything at once. */
  close(): void {
    clearInterval(this.#sweepTimer);
    this.#closeListener();
    this.#turnWrites.flush();
    this.#app.close();
  }

  #takeGuarded(response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null): void {
    this.#taken = null;
    this.#atOnce.isReading = true;
    try {
      this.#take(response, request, context);
    } catch (fault) {
      if (this.#taken !== null) handFault(this.#taken, 'request', fault);
      else {
        this.#options.onFault('request', fault);
        refuseBare(response);
      }
    } finally {
      this.#atOnce.isReading = false;
    }
  }

  #take(response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null): void {
    const cors = this.#cors;
    const head = readHead(request, this.#slots);
    if (this.#readsPeers) head.peer = response.getRemoteAddress();
    if (cors !== null && head.origin !== '') head.answerLines = cors.answerLines(head.origin);
    const exchange = new Exchange(
      new UwsResponse(response, this.#atOnce, this.#turnWrites, head.connection),
      request.getCaseSensitiveMethod(),
      request.getUrl(),
      head,
      nextRequestNumber(),
      this.#host,
    );
    this.#taken = exchange;
    if (cors !== null && isPreflight(exchange)) {
      exchange.respondEmpty(204, cors.preflightLines(head.requestedHeaders), null);
      return;
    }
    if (context !== null) exchange.offer = { response, context, host: this.#host };
    const { onRequest } = this.#options;
    // While an answer is pending uWS cuts a connection on which another request begins: so what hides behind a
    // request of doubtful length is never read as one.
    if (head.framingFault === null) onRequest(exchange);
    else setImmediate(guard('request', exchange, () => onRequest(exchange)));
  }

  /** Where descriptors have run out, ceases to listen until there are some. */
  #listenAsPossible(): void {
    const { isShort, onListening } = this.#options;
    const place = this.#place;
    if (place === null || isShort === undefined || isShort() === (this.#listening === null)) return;
    if (this.#listening === null) {
      this.#app.listen(place.address, place.port, (socket) => {
        if (!socket) return;
        this.#listening = socket;
        onListening?.(true);
      });
      return;
    }
    this.#closeListener();
    this.#place = place;
    onListening?.(false);
  }

  /** Not twice: uWS frees the listening socket, at the end of the server too. */
  #closeListener(): void {
    if (this.#listening !== null) us_listen_socket_close(this.#listening);
    this.#listening = null;
    this.#place = null;
  }
}

/**
 * Waits for a turn of the event loop in which there was next to nothing to do. Each turn begins with taking every
 * connection that waits in the listener's queue; the system resets those that come between that and the end of the
 * listening, so this is when the fewest can.
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

/** Answers a request of which there is no exchange; uWS wants an answer, or a handler for the client's leaving. */
function refuseBare(response: HttpResponse): void {
  try {
    response.cork(() => response.writeStatus('500 Internal Server Error').end('', true));
  } catch {
    // It was answered before the fault, or its client has left.
  }
}

/** The question of a browser whether a page may call; nobody signs in with it. */
function isPreflight({ method, head }: Exchange): boolean {
  return method === 'OPTIONS' && head.origin !== '' && head.requestedMethod !== '';
}
