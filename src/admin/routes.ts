import type { IncomingMessage } from 'node:http';
import type { Access } from './access.js';
import type { AdminAnswer } from './answer.js';

export interface AdminRequest {
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  /** Parts of the path that stand for `{name}`. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborted when the connection is gone before the answer has ended. */
  readonly signal: AbortSignal;
}

export interface AdminRoute {
  /** HEAD is served as GET is. */
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As the gateway's router reads it. */
  readonly path: string;
  readonly access: Access;
  /** @throws {GatewayError} for what the operator is told */
  handle(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

/** A route of operators, which is to look and nothing else where its method is `GET`. */
export function route(method: AdminRoute['method'], path: string, handle: AdminRoute['handle']): AdminRoute {
  return { method, path, access: method === 'GET' ? 'read' : 'write', handle };
}
