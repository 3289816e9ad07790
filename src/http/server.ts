import {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type us_listen_socket,
  us_listen_socket_close,
  type us_socket_context_t,
  us_socket_local_port,
} from 'uWebSockets.js';
import { nextRequestNumber } from '../request-id.js';
import { createBodyPool } from './body-pool.js';
import { type CorsSettings, createCors } from './cors.js';
import { Exchange } from './exchange.js';
import type { ExchangeHost } from './exchange-host.js';
import { type HeaderSlots, type HeaderWords, headerSlots, readHead } from './request-head.js';
import { type SocketLimits, takeSockets } from './socket.js';
import { TendList } from './upkeep.js';

export interface ServerOptions {
  readonly words: HeaderWords;
  readonly cors: CorsSettings | null;
  /** Paths of PEM files, or null for plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** The addresses of clients are wanted, and what proxies say of them. */
  readonly readsPeers: boolean;
  /** Where requests for a WebSocket are taken. */
  readonly sockets: { readonly paths: readonly string[]; readonly limits: SocketLimits };
  readonly onRequest: (exchange: Exchange) => void;
}

export interface Server {
  /** @returns the port, which differs from the one asked for when that was 0. Rejects when it is taken. */
  listen(host: string, port: number): Promise<number>;
  /** Puts other settings in force for the requests to come. */
  set(settings: Pick<ServerOptions, 'words' | 'cors' | 'readsPeers'>): void;
  /** Answers that have not ended. */
  open(): number;
  /** Requests since the start. */
  served(): number;
  /**
   * Stops accepting; from now on answers end their connections; resolves when the last one open has ended.
   * @param graceMs for so long after it what still comes on idle connections is served; a moment unless given
   */
  drain(graceMs?: number): Promise<void>;
  /** Closes everything at once. */
  close(): void;
}

/** uWS drops a socket that makes no progress after eight to twelve seconds; well under that. */
const upkeepMs = 4000;
/** Buffers for request bodies that may wait for their next use. */
const pooledBytes = 32 * 1024 * 1024;
/** A turn of the event loop that is as short as this took no connection and no request; and how long one is waited for. */
const quietMs = 0.02;
const quietPatienceMs = 200;
/** Between the end of listening and the first answer that ends its connection. */
const drainDelayMs = 100;
/** Requests on connections that were idle when the drain began are still served for so long. */
const drainGraceMs = 300;

/** @returns a server on uWebSockets.js that turns every request into an `Exchange`. */
export function createServer(options: ServerOptions): Server {
  const host: ExchangeHost = {
    tended: new TendList(),
    draining: false,
    open: 0,
    served: 0,
    onIdle: null,
    bodies: createBodyPool(pooledBytes),
  };
  let slots: HeaderSlots = headerSlots(options.words, options.readsPeers);
  let { readsPeers } = options;
  let cors = createCors(options.cors);
  let listening: us_listen_socket | null = null;
  const app =
    options.tls === null
      ? App()
      : SSLApp({ cert_file_name: options.tls.cert, key_file_name: options.tls.key });

  const take = (response: HttpResponse, request: HttpRequest, context: us_socket_context_t | null) => {
    const head = readHead(request, slots);
    if (readsPeers) head.peer = response.getRemoteAddress();
    if (cors !== null && head.origin !== '') head.answerLines = cors.answerLines(head.origin);
    const exchange = new Exchange(
      response,
      request.getCaseSensitiveMethod(),
      request.getUrl(),
      head,
      nextRequestNumber(),
      host,
    );
    if (cors !== null && isPreflight(exchange)) {
      exchange.respond(204, cors.preflightLines(head.requestedHeaders), '');
      return;
    }
    if (context !== null) exchange.offer = { context, host };
    // While an answer is pending uWS cuts a connection on which another request begins: so what hides behind a
    // request of doubtful length is never read as one.
    if (head.framingFault !== null) setImmediate(options.onRequest, exchange);
    else options.onRequest(exchange);
  };
  takeSockets(app, options.sockets.paths, options.sockets.limits, take);
  app.any('/*', (response, request) => take(response, request, null));

  /** Not twice: uWS frees the listening socket, at the end of the server too. */
  const stopListening = (): void => {
    if (listening !== null) us_listen_socket_close(listening);
    listening = null;
  };

  const upkeep = setInterval(() => {
    host.tended.tend();
    host.bodies.trim();
  }, upkeepMs);
  upkeep.unref();

  return {
    listen: (address, port) =>
      new Promise((resolve, reject) => {
        app.listen(address, port, (socket) => {
          if (socket) {
            listening = socket;
            resolve(us_socket_local_port(socket));
          } else reject(new Error(`cannot listen on ${address}:${port}`));
        });
      }),
    set: (settings) => {
      slots = headerSlots(settings.words, settings.readsPeers);
      readsPeers = settings.readsPeers;
      cors = createCors(settings.cors);
    },
    open: () => host.open,
    served: () => host.served,
    drain: async (graceMs = drainGraceMs) => {
      if (listening !== null) await quietTurn();
      // The server may have been closed meanwhile.
      stopListening();
      return new Promise((resolve) => {
        let quiet: NodeJS.Timeout | undefined;
        const settle = () => {
          clearTimeout(quiet);
          quiet = setTimeout(() => {
            if (host.open === 0) resolve();
          }, graceMs);
        };
        // Clients that are told to close connect anew: not before every worker has stopped to listen, or they would
        // wait in the queue of one that closes it in their face.
        setTimeout(() => {
          host.draining = true;
          host.onIdle = settle;
          if (host.open === 0) settle();
        }, drainDelayMs);
      });
    },
    close: () => {
      clearInterval(upkeep);
      stopListening();
      app.close();
    },
  };
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

/** The question of a browser whether a page may call; nobody signs in with it. */
function isPreflight({ method, head }: Exchange): boolean {
  return method === 'OPTIONS' && head.origin !== '' && head.requestedMethod !== '';
}
