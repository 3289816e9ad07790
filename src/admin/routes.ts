import type { IncomingMessage } from 'node:http';
import type { AdminAnswer } from './answer.js';

export interface AdminRequest {
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  /** Parts of the path that stand for `:name`. */
  readonly params: Readonly<Record<string, string>>;
}

export interface AdminRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** A part that begins with a colon stands for anything. */
  readonly path: string;
  readonly needsToken: boolean;
  /** @throws {GatewayError} for what the operator is told */
  handle(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

export type AdminMatch =
  | { readonly kind: 'found'; readonly route: AdminRoute; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'methodNotAllowed'; readonly allow: string }
  | { readonly kind: 'notFound' };

/** HEAD is served as GET is. */
export function findRoute(routes: readonly AdminRoute[], method: string, path: string): AdminMatch {
  const wanted = method === 'HEAD' ? 'GET' : method;
  const allowed: string[] = [];
  for (const route of routes) {
    const params = match(route.path, path);
    if (params === null) continue;
    if (route.method === wanted) return { kind: 'found', route, params };
    allowed.push(route.method);
  }
  return allowed.length === 0
    ? { kind: 'notFound' }
    : { kind: 'methodNotAllowed', allow: allowed.join(', ') };
}

function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const parts = path.split('/');
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const given = parts[index] as string;
    if (!part.startsWith(':')) {
      if (part !== given) return null;
      continue;
    }
    const value = decode(given);
    if (value === null || value === '') return null;
    params[part.slice(1)] = value;
  }
  return params;
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
