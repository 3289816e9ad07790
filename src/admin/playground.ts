import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { finished } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { ResolvedModel } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import { type AdminAnswer, json, readObject, wrong } from './answer.js';
import { type AdminRequest, type AdminRoute, route } from './routes.js';

/** The gateway's data that the playground uses. */
export interface PlaygroundSources {
  /** URL of the gateway's listener. */
  readonly url: string;
  models(): readonly ResolvedModel[];
  /** The demo's key, which is public. Null for other gateways. */
  demoKey(): string | null;
}

/** Largest request to the relay: a body for the gateway, and the data of the call. */
const longestRequestBytes = 8 * 1024 * 1024;
const mostRelays = 32;

/** Headers that belong to one connection, not to the response. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Headers without which the body's bytes cannot be interpreted. */
const ofTheBody = ['content-type', 'content-encoding', 'content-length'] as const;

/**
 * Routes `GET /playground/models` and `POST /playground`, which sends a call to the gateway's own port and relays the
 * answer as it arrives. The page's policy limits it to its own origin, and the gateway may not permit calls from pages
 * of other origins, so calls are relayed here.
 */
export function playgroundRoutes(sources: PlaygroundSources): readonly AdminRoute[] {
  let open = 0;

  const relay = async ({ request, signal }: AdminRequest): Promise<AdminAnswer> => {
    if (open >= mostRelays) {
      throw new GatewayError('overloaded', `${mostRelays} calls are being relayed.`, { retryAfter: 1 });
    }
    open += 1;
    const release = (): void => {
      open -= 1;
    };
    try {
      const call = readPlaygroundCall(await readObject(request, longestRequestBytes));
      const answer = await callGateway(sources.url, call, signal);
      finished(answer, release);
      return relayed(answer, signal);
    } catch (error) {
      release();
      throw error;
    }
  };

  return [
    route('POST', '/playground', relay),
    route('GET', '/playground/models', () =>
      json({
        demoKey: sources.demoKey(),
        models: sources.models().map(({ name, protocols }) => ({ name, protocols })),
      }),
    ),
  ];
}

/**
 * Relays the gateway's answer. Its status is in a header of its own, so that a 401 for a wrong key differs from one for
 * the admin token.
 */
function relayed(answer: IncomingMessage, signal: AbortSignal): AdminAnswer {
  const told: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !hopByHop.has(name))
      told[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const headers: Record<string, string> = {
    'x-answer-status': `${answer.statusCode}`,
    'x-answer-headers': encodeURIComponent(JSON.stringify(told)),
    // A browser must treat whatever a model answers as data.
    'content-security-policy': "default-src 'none'; sandbox",
  };
  for (const name of ofTheBody) if (told[name] !== undefined) headers[name] = told[name];
  return {
    status: 200,
    contentType: told['content-type'] ?? 'application/octet-stream',
    body: piecesOf(answer, signal),
    headers,
  };
}

/** @throws whatever ended the answer early, unless its reader has disconnected */
async function* piecesOf(answer: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* answer;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const methods = ['GET', 'POST', 'DELETE'] as const;
const members = new Set(['method', 'path', 'key', 'headers', 'body']);
const pathForm = /^\/[\x21-\x7e]*$/;
const keyForm = /^[\x21-\x7e]{1,512}$/;
const headerName = /^[\w!#$%&'*+.^`|~-]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that the relay sets itself, or that belong to one connection. */
const ownHeaders = new Set([
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Reads a call that the playground wants to send to the gateway.
 * @throws {GatewayError} of status 400, with the wrong member
 */
function readPlaygroundCall(source: Readonly<Record<string, unknown>>): GatewayCall {
  const unknown = Object.keys(source).find((name) => !members.has(name));
  if (unknown !== undefined) throw wrong(unknown, 'is not known here');
  const { path, key, body = null } = source;
  const method = methods.find((each) => each === source.method);
  if (method === undefined) throw wrong('method', `must be one of ${methods.join(', ')}`);
  if (typeof path !== 'string' || !pathForm.test(path)) {
    throw wrong('path', 'must begin with a slash and have no spaces');
  }
  if (typeof key !== 'string' || !keyForm.test(key)) throw wrong('key', 'must be a key of the gateway');
  if (body !== null && typeof body !== 'string') throw wrong('body', 'must be a text or null');
  const headers = readHeaders(source.headers ?? {});
  headers.authorization = `Bearer ${key}`;
  if (body !== null) headers['content-type'] ??= 'application/json';
  return { method, path, headers, body };
}

function readHeaders(source: unknown): Record<string, string> {
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw wrong('headers', 'must be an object');
  }
  const headers: Record<string, string> = {};
  for (const [given, value] of Object.entries(source)) {
    const name = given.toLowerCase();
    if (!headerName.test(name)) throw wrong('headers', 'have a name that no header can have');
    if (ownHeaders.has(name)) throw wrong(`headers.${name}`, 'is set by the relay');
    if (typeof value !== 'string' || !headerValue.test(value)) {
      throw wrong(`headers.${name}`, 'must be a valid header value');
    }
    headers[name] = value;
  }
  return headers;
}

/** A call written by an operator. */
interface GatewayCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Includes the query. */
  readonly path: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Addresses that stand for all addresses of this machine, with those at which a local client reaches them. */
const loopbackOf: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/**
 * Calls the gateway over its own port, as any client does.
 * @param gateway URL of its listener
 * @param signal ends the call at any time, including while its answer is read
 * @returns the answer, as soon as its head has arrived
 * @throws {GatewayError} `upstream_error` if the port cannot be reached or does not answer
 */
function callGateway(gateway: string, call: GatewayCall, signal: AbortSignal): Promise<IncomingMessage> {
  const url = new URL(gateway);
  url.hostname = loopbackOf[url.hostname] ?? url.hostname;
  const isSecure = url.protocol === 'https:';
  const options = {
    ...urlToHttpOptions(url),
    method: call.method,
    path: call.path,
    headers: call.headers,
    signal,
    // A new connection for each call. Calls are few, and a kept connection might have been closed meanwhile.
    agent: false,
    // The address is the gateway's own listener. Its certificate is for the name that its clients use.
    rejectUnauthorized: false,
  } as const;
  return new Promise((resolve, reject) => {
    const request: ClientRequest = isSecure ? requestSecure(options) : requestPlain(options);
    request.on('response', resolve);
    // Stays for errors after the answer has begun. The answer's reader is notified of those, too.
    request.on('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code ?? error.message;
      reject(new GatewayError('upstream_error', `The gateway gave no answer on ${url.origin} (${reason}).`));
    });
    request.end(call.body ?? undefined);
  });
}
