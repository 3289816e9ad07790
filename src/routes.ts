import type { Protocol, VendorWords } from './config/types.js';
import type { AuthStyle } from './dialects/credentials.js';
import type { Dialect } from './dialects/dialect.js';
import { google } from './dialects/google.js';
import { openai } from './dialects/openai.js';
import { GatewayError } from './errors.js';
import { chatRequest } from './protocols/chat/schema.js';
import type { CompiledSchema } from './schema/compile.js';

/** What a route does; the flow has one handler for each. */
export type Operation =
  | 'chat'
  /** `GET /v1/models` and one model of it: the request's headers choose the format. */
  | 'modelList'
  | 'model'
  /** The same under `/v1beta`, always in generateContent format. */
  | 'googleModelList'
  | 'googleModel'
  /** A WebSocket is tried here first by coding agents, which fall back to POST on 426 alone. */
  | 'responsesSocket'
  /** Answers 501. */
  | 'unimplemented';

/** One line of the HTTP surface: all that is known of a request from its method and path. */
export interface Route {
  readonly method: string;
  /** As `parsePath` of the router reads it. */
  readonly path: string;
  readonly operation: Operation;
  /** The protocol in which the model must be offered, or null where no model is called. */
  readonly protocol: Protocol | null;
  readonly dialect: Dialect;
  readonly auth: AuthStyle;
  readonly schema: CompiledSchema | null;
}

const unimplemented = [
  ['GET', '/v1/fine-tunes'],
  ['POST', '/v1/fine-tunes'],
  ['GET', '/v1/fine-tunes/{fine_tune_id}'],
  ['POST', '/v1/fine-tunes/{fine_tune_id}/cancel'],
  ['GET', '/v1/fine-tunes/{fine_tune_id}/events'],
  ['GET', '/v1/files'],
  ['POST', '/v1/files'],
  ['GET', '/v1/files/{file_id}'],
  ['DELETE', '/v1/files/{file_id}'],
  ['GET', '/v1/files/{file_id}/content'],
] as const;

const surface: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    operation: 'chat',
    protocol: 'chat',
    dialect: openai,
    auth: 'bearer',
    schema: chatRequest,
  },
  modelRoute('/v1/models', 'modelList', openai, 'modelList'),
  modelRoute('/v1/models/{model...}', 'model', openai, 'modelList'),
  modelRoute('/v1beta/models', 'googleModelList', google, 'generateContent'),
  modelRoute('/v1beta/models/{model...}', 'googleModel', google, 'generateContent'),
  {
    method: 'GET',
    path: '/v1/responses',
    operation: 'responsesSocket',
    protocol: null,
    dialect: openai,
    auth: 'bearer',
    schema: null,
  },
  ...unimplemented.map(
    ([method, path]): Route => ({
      method,
      path,
      operation: 'unimplemented',
      protocol: null,
      dialect: openai,
      auth: 'bearer',
      schema: null,
    }),
  ),
];

/**
 * The whole HTTP surface. What is not built is not in it.
 * @param vendors real words that stand beside the neutral path prefixes: such a route is listed once for each.
 */
export function buildRoutes(vendors: VendorWords): readonly Route[] {
  return surface.flatMap((route) =>
    pathSpellings(route.path, vendors).map((path) => Object.freeze({ ...route, path })),
  );
}

/** A path with a neutral vendor prefix, and the same path with each real word in its place. */
export function pathSpellings(path: string, vendors: VendorWords): readonly string[] {
  for (const neutral of ['vendork', 'vendorj'] as const) {
    const prefix = `/${neutral}/`;
    if (!path.startsWith(prefix)) continue;
    const words = new Set([neutral, ...vendors[neutral]]);
    return [...words].map((word) => `/${word}/${path.slice(prefix.length)}`);
  }
  return [path];
}

const longestEcho = 200;
const doubledVersion = /^\/(v1|v1beta)\/(?:v1|v1beta)(?:\/|$)/;

/**
 * The 404 for a path that no route knows. A version twice means that it was put into the client's base URL although
 * the client appends it: the message says so.
 * @param path without the query, which may hold a key.
 */
export function unknownUrl(method: string, path: string): GatewayError {
  const shown = path.length > longestEcho ? `${path.slice(0, longestEcho)}…` : path;
  const version = doubledVersion.exec(path)?.[1];
  const hint =
    version === undefined
      ? ''
      : ` The base URL already ends in /${version}, so the path has a version twice: remove one of them.`;
  return new GatewayError('unknown_url', `Unknown request URL: ${method} ${shown}.${hint}`);
}

/**
 * The 405 for a known path.
 * @param allow methods of the path, as in the `Allow` header.
 */
export function methodNotAllowed(method: string, allow: string): GatewayError {
  return new GatewayError(
    'method_not_allowed',
    `The method ${method} is not allowed here. Allowed: ${allow}.`,
    {
      allow,
    },
  );
}

function modelRoute(path: string, operation: Operation, dialect: Dialect, auth: AuthStyle): Route {
  return { method: 'GET', path, operation, protocol: null, dialect, auth, schema: null };
}
