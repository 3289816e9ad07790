import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { AdminTokens } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import type { AdminAnswer } from './answer.js';

export interface AdminRequest {
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  /** Values of the path's `{name}` parts. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborted if the connection closes before the response has ended. */
  readonly signal: AbortSignal;
}

export interface AdminRoute {
  /** HEAD is served like GET. */
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In the syntax of the gateway's router. */
  readonly path: string;
  readonly access: Access;
  /** @throws {GatewayError} that is returned to the operator */
  handle(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

/** Creates a route for operators. Read access suffices if its method is `GET`. */
export function route(method: AdminRoute['method'], path: string, handle: AdminRoute['handle']): AdminRoute {
  return { method, path, access: method === 'GET' ? 'read' : 'write', handle };
}

/** Access levels: anybody, metrics, read-only, and changes. */
export type Access = 'open' | 'metrics' | 'read' | 'write';

/** In ascending order. Each level includes those before it. */
const order: readonly Access[] = ['open', 'metrics', 'read', 'write'];

const scheme = /^bearer +/i;

const noToken = new GatewayError(
  'invalid_api_key',
  'The admin token is missing or wrong: send it as "authorization: Bearer …".',
);
const onlyMetrics = new GatewayError(
  'permission_denied',
  'This token is only valid for GET /metrics (admin.metricsToken).',
);
const onlyReads = new GatewayError(
  'permission_denied',
  'This token is read-only (admin.readToken): use admin.token.',
);

/**
 * Determines the access level of a request from its `authorization` header, in constant time.
 * @param wanted the required level
 * @throws GatewayError of status 401 without a known token, 403 with one of a lower level
 */
export function checkAccess(authorization: string | undefined, tokens: AdminTokens, wanted: Access): Access {
  if (wanted === 'open') return 'open';
  const granted = accessBy(authorization, tokens);
  if (granted === null) throw noToken;
  if (order.indexOf(granted) < order.indexOf(wanted)) throw granted === 'metrics' ? onlyMetrics : onlyReads;
  return granted;
}

/** How clients send what is not ASCII: browsers in Latin-1, most others in UTF-8. Node reads a header as Latin-1. */
const encodings = ['utf8', 'latin1'] as const;

function accessBy(authorization: string | undefined, tokens: AdminTokens): Access | null {
  if (authorization === undefined || !scheme.test(authorization)) return null;
  const given = digest(Buffer.from(authorization.replace(scheme, '').replace(/[ \t]+$/, ''), 'latin1'));
  const isGiven = (token: string | null): boolean =>
    token !== null &&
    encodings.some((encoding) => timingSafeEqual(digest(Buffer.from(token, encoding)), given));
  const [isAll, isRead, isMetrics] = [tokens.token, tokens.readToken, tokens.metricsToken].map(isGiven);
  if (isAll) return 'write';
  if (isRead) return 'read';
  return isMetrics ? 'metrics' : null;
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
