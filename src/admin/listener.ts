import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { AdminSettings } from '../config/resolve.js';
import { type FaultPlace, GatewayError } from '../errors.js';
import { createRouter, type Router } from '../http/router.js';
import { type AdminAnswer, errorAnswer, send } from './answer.js';
import type { AdminRoute } from './routes.js';

/** Operators and their tools are few. */
const maxConnections = 256;
const maxHeaderBytes = 16 * 1024;
const headersMs = 10_000;
const requestMs = 30_000;
const scheme = /^bearer +/i;

export interface AdminListener {
  readonly port: number;
  /** Stops taking requests and cuts those under way. */
  close(): void;
}

/**
 * Listens for operators, on an address of their own. Everything but health, readiness and the files of the console's
 * page wants the token.
 * @param onFault hears of mistakes of ours, each of which ends one answer
 * @throws Error when the address cannot be had
 */
export function startAdmin(
  settings: AdminSettings,
  routes: readonly AdminRoute[],
  log: Logger,
  onFault: OnFault = (where, fault) => log.error({ where, err: fault }, 'a fault of ours'),
): Promise<AdminListener> {
  const isAllowed = createTokenCheck(settings.token);
  const router = createRouter(
    routes.map((route) => ({ method: route.method, path: route.path, value: route })),
  );
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, headersTimeout: headersMs, requestTimeout: requestMs },
    (request, response) => {
      serve({ router, isAllowed, onFault }, request, response).catch((error: unknown) => {
        onFault('admin', error);
        response.destroy();
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

type OnFault = (where: FaultPlace, fault: unknown) => void;

interface Serving {
  readonly router: Router<AdminRoute>;
  readonly isAllowed: (authorization: string | undefined) => boolean;
  readonly onFault: OnFault;
}

async function serve(serving: Serving, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on('error', () => {});
  response.on('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  await send(response, await answer(serving, request, gone.signal));
}

async function answer(
  { router, isAllowed, onFault }: Serving,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<AdminAnswer> {
  try {
    const url = urlOf(request);
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
    onFault('admin', error);
    return errorAnswer(
      new GatewayError('internal_error', error instanceof Error ? error.message : undefined),
    );
  }
}

/** @throws {GatewayError} `invalid_request` for a target that is no path, as `//` */
function urlOf({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://admin')) throw new GatewayError('invalid_request', 'The target is no URL.');
  return new URL(url, 'http://admin');
}

const noToken = new GatewayError(
  'invalid_api_key',
  'The admin token is missing or wrong: send it as "authorization: Bearer …".',
);

/**
 * Makes the check of the admin token.
 * @returns says whether an `authorization` header holds it, in a time that says nothing about how much of it is right
 */
function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const wanted = digest(token);
  return (authorization) =>
    authorization !== undefined &&
    scheme.test(authorization) &&
    timingSafeEqual(digest(authorization.replace(scheme, '').trimEnd()), wanted);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
