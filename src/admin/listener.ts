import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { AdminSettings, AdminTokens } from '../config/resolve.js';
import { type FaultPlace, GatewayError } from '../errors.js';
import { createRouter, type Router } from '../http/router.js';
import { type Access, checkAccess } from './access.js';
import { type AdminAnswer, errorAnswer, send } from './answer.js';
import type { AdminRoute } from './routes.js';

/** Connections of a listener on which nobody with a token is asking for anything. */
interface Strangers {
  /** One of them has shown a token, and is none until its answer has ended. */
  admit(response: ServerResponse): void;
}

/**
 * Bounds the connections that anybody may open and hold, by requests that never end or answers that are not read: where
 * there are too many, the one that has been there longest gives way, so that operators always find room.
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

/** Operators and their tools are few. */
const maxConnections = 256;
/** Of these, the ones that whoever has no token may hold. */
const mostStrangers = 192;
const maxHeaderBytes = 16 * 1024;
const headersMs = 10_000;
const requestMs = 30_000;
/** How often it is looked whether whoever is told what happens may still hear it. */
const accessMs = 1000;
/** Tells the console whether it may offer what changes something. */
const accessHeader = 'x-admin-access';

export interface AdminListener {
  readonly port: number;
  /** Stops taking requests and cuts those under way. */
  close(): void;
}

/**
 * Listens for operators, on an address of their own. Everything but health, readiness and the files of the console's
 * page wants a token.
 * @param tokens those that hold at this moment
 * @param onFault hears of mistakes of ours, each of which ends one answer
 * @throws Error when the address cannot be had
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

/** Ends what has no end of its own once the token that it was asked for with is worth nothing any more. */
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

/** @throws {GatewayError} `invalid_request` for a target that is no path, as `//` */
function urlOf({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://admin')) throw new GatewayError('invalid_request', 'The target is no URL.');
  return new URL(url, 'http://admin');
}
