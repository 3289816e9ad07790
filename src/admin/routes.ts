import type { IncomingMessage } from 'node:http';
import type { Access } from './access.js';
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
