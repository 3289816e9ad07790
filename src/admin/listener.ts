import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { AdminSettings } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import { createRouter, type Router } from '../http/router.js';
import { type AdminAnswer, errorAnswer, send } from './answer.js';
import type { AdminRoute } from './routes.js';
import { createTokenCheck } from './token.js';

/** Operators and their tools are few. */
const maxConnections = 256;
const maxHeaderBytes = 16 * 1024;
const headersMs = 10_000;
const requestMs = 30_000;

export interface AdminListener {
  readonly port: number;
  /** Stops taking requests and cuts those under way. */
  close(): void;
}

/**
 * Listens for operators, on an address of their own. Everything but health, readiness and the files of the console's
 * page wants the token.
 * @throws Error when the address cannot be had
 */
export function startAdmin(
  settings: AdminSettings,
  routes: readonly AdminRoute[],
  log: Logger,
): Promise<AdminListener> {
  const isAllowed = createTokenCheck(settings.token);
  const router = createRouter(
    routes.map((route) => ({ method: route.method, path: route.path, value: route })),
  );
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, headersTimeout: headersMs, requestTimeout: requestMs },
    (request, response) => {
      serve(router, isAllowed, request, response).catch((error: unknown) => {
        log.error({ err: error }, 'an answer to an operator broke off');
      });
    },
  );
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

async function serve(
  router: Router<AdminRoute>,
  isAllowed: (authorization: string | undefined) => boolean,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.on('error', () => {});
  response.on('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  await send(response, await answer(router, isAllowed, request, gone.signal));
}

async function answer(
  router: Router<AdminRoute>,
  isAllowed: (authorization: string | undefined) => boolean,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<AdminAnswer> {
  try {
    const url = new URL(request.url ?? '/', 'http://admin');
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
    const found = router.find(method, url.pathname);
    const needsToken = found.kind !== 'found' || found.value.needsToken;
    if (needsToken && !isAllowed(request.headers.authorization)) throw noToken;
    if (found.kind === 'notFound') throw new GatewayError('unknown_url');
    if (found.kind === 'methodNotAllowed') {
      throw new GatewayError('method_not_allowed', undefined, { allow: found.allow });
    }
    return await found.value.handle({ request, query: url.searchParams, params: found.params, signal });
  } catch (error) {
    if (error instanceof GatewayError) return errorAnswer(error);
    return errorAnswer(
      new GatewayError('internal_error', error instanceof Error ? error.message : undefined),
    );
  }
}

const noToken = new GatewayError(
  'invalid_api_key',
  'The admin token is missing or wrong: send it as "authorization: Bearer …".',
);
