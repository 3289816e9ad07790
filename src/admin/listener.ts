import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { AdminSettings, AdminTokens } from '../config/resolve.js';
import { type FaultPlace, GatewayError } from '../errors.js';
import { createRouter, type Router } from '../http/router.js';
import { type AdminAnswer, errorAnswer, send } from './answer.js';
import { type Access, type AdminRoute, checkAccess } from './routes.js';

/** Connections of a listener without a request that has a valid token. */
interface Strangers {
  /** Exempts a connection with a valid token until its response ends. */
  admit(response: ServerResponse): void;
}

/**
 * Bounds the connections that clients without a token can hold, with requests that never end or responses that are not
 * read. If there are too many, the oldest is closed, so that operators can always connect.
 */
function boundStrangers(server: Server, most: number): Strangers {
  const strangers = new Set<Socket>();
  server.on('connection', (socket) => {
    strangers.add(socket);
    socket.once('close', () => strangers.delete(socket));
    if (strangers.size <= most) return;
    const [oldest] = strangers;
    oldest?.destroy();
  });
  return {
    admit(response) {
      const { socket } = response;
      if (socket === null) return;
      strangers.delete(socket);
      response.once('close', () => {
        if (!socket.destroyed) strangers.add(socket);
      });
    },
  };
}

/** Most connections. Operators and their tools are few. */
const maxConnections = 256;
/** Most connections without a token. */
const mostStrangers = 192;
const maxHeaderBytes = 16 * 1024;
const headersMs = 10_000;
const requestMs = 30_000;
/** How often the token of an open stream is checked again. */
const accessMs = 1000;
/** Header that tells the console whether the token permits changes. */
const accessHeader = 'x-admin-access';

export interface AdminListener {
  readonly port: number;
  /** Stops accepting requests and ends those in flight. */
  close(): void;
}

/**
 * Starts the operators' listener, on an address of its own. Everything except health, readiness and the files of the
 * console requires a token.
 * @param tokens returns the tokens that are valid now
 * @param onFault receives internal errors, each of which ends one response
 * @throws Error if the address is not available
 */
export function startAdmin(
  settings: Pick<AdminSettings, 'host' | 'port'>,
  tokens: () => AdminTokens,
  routes: readonly AdminRoute[],
  log: Logger,
  onFault: OnFault = (where, fault) => log.error({ where, err: fault }, 'internal error'),
): Promise<AdminListener> {
  const router = createRouter(
    routes.map((route) => ({ method: route.method, path: route.path, value: route })),
  );
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, headersTimeout: headersMs, requestTimeout: requestMs },
    (request, response) => {
      serve({ router, tokens, strangers, onFault }, request, response).catch((error: unknown) => {
        onFault('admin', error);
        response.destroy();
      });
    },
  );
  const strangers = boundStrangers(server, mostStrangers);
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.port, settings.host, () => {
      server.off('error', reject);
      server.on('error', (error) => log.error({ err: error }, 'the admin listener failed'));
      const address = server.address();
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : settings.port,
        close: () => {
          server.close();
          server.closeAllConnections();
        },
      });
    });
  });
}

type OnFault = (where: FaultPlace, fault: unknown) => void;

interface Serving {
  readonly router: Router<AdminRoute>;
  readonly tokens: () => AdminTokens;
  readonly strangers: Strangers;
  readonly onFault: OnFault;
}

async function serve(serving: Serving, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on('error', () => {});
  response.on('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  await send(response, await answer(serving, request, response, gone.signal));
}

async function answer(
  { router, tokens, strangers, onFault }: Serving,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<AdminAnswer> {
  try {
    const url = urlOf(request);
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
    const found = router.find(method, url.pathname);
    const wanted = found.kind === 'found' ? found.value.access : 'metrics';
    const granted = checkAccess(request.headers.authorization, tokens(), wanted);
    if (granted !== 'open') strangers.admit(response);
    if (found.kind === 'notFound') throw new GatewayError('unknown_url');
    if (found.kind === 'methodNotAllowed') {
      throw new GatewayError('method_not_allowed', undefined, { allow: found.allow });
    }
    const { handle } = found.value;
    const answered = await handle({ request, query: url.searchParams, params: found.params, signal });
    if (granted === 'open') return answered;
    const { body } = answered;
    const isAllowed = (): boolean => mayStill(request, tokens(), wanted);
    return {
      ...answered,
      body: typeof body === 'function' ? whileAllowed(body, isAllowed) : body,
      headers: { ...answered.headers, [accessHeader]: granted },
    };
  } catch (error) {
    if (error instanceof GatewayError) return errorAnswer(error);
    onFault('admin', error);
    return errorAnswer(
      new GatewayError('internal_error', error instanceof Error ? error.message : undefined),
    );
  }
}

function mayStill(request: IncomingMessage, tokens: AdminTokens, wanted: Access): boolean {
  try {
    checkAccess(request.headers.authorization, tokens, wanted);
    return true;
  } catch {
    return false;
  }
}

/** Closes a stream when its token is revoked. */
function whileAllowed(
  body: (response: ServerResponse) => void,
  isAllowed: () => boolean,
): (response: ServerResponse) => void {
  return (response) => {
    const timer = setInterval(() => {
      if (!isAllowed()) response.destroy();
    }, accessMs).unref();
    response.once('close', () => clearInterval(timer));
    body(response);
  };
}

/** @throws {GatewayError} `invalid_request` for a target that is not a path, such as `//` */
function urlOf({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://admin')) throw new GatewayError('invalid_request', 'The target is no URL.');
  return new URL(url, 'http://admin');
}
