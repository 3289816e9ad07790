import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { finished } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { ResolvedModel } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import { type AdminAnswer, json, readObject, wrong } from './answer.js';
import { type AdminRequest, type AdminRoute, route } from './routes.js';

/** What the playground needs to know of the gateway. */
export interface PlaygroundSources {
  /** Of the gateway's listener. */
  readonly url: string;
  models(): readonly ResolvedModel[];
  /** The key that everybody may read; null but for the demo. */
  demoKey(): string | null;
}

/** Of a request to the relay: a body for the gateway and what stands around it. */
const longestRequestBytes = 8 * 1024 * 1024;
const mostRelays = 32;

/** They belong to one connection, not to the answer. */
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
/** Without these the bytes of the body cannot be read. */
const ofTheBody = ['content-type', 'content-encoding', 'content-length'] as const;

/**
 * `POST /playground`, which sends a call to the gateway's own port and relays the answer as it comes, and
 * `GET /playground/models`. The page's policy lets it talk to its own origin only, and the gateway need not let pages
 * of other origins call it: so calls go through here.
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

/** The status of the gateway's answer is told apart: a 401 of a wrong key is none of the admin token's. */
function relayed(answer: IncomingMessage, signal: AbortSignal): AdminAnswer {
  const told: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !hopByHop.has(name))
      told[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const headers: Record<string, string> = {
    'x-answer-status': `${answer.statusCode}`,
    'x-answer-headers': encodeURIComponent(JSON.stringify(told)),
    // Whatever a model answers, a browser is to take it for data.
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

/** @throws what ended the answer too soon, unless it was its reader who left */
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

/** What the relay says itself, and what belongs to one connection alone. */
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
 * Reads what the playground is to send to the gateway.
 * @throws {GatewayError} of status 400, with the member at fault
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

/** A call as an operator wrote it. */
interface GatewayCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With its query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Addresses that stand for every address of this machine, and where a client on it finds them. */
const loopbackOf: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/**
 * Calls the gateway over its own port, as any client does.
 * @param gateway URL of its listener
 * @param signal ends the call at any time, also while its answer is being read
 * @returns the answer, as soon as its head is there
 * @throws {GatewayError} `upstream_error` when the port cannot be reached or gives no answer
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
    // A connection of its own: there are few calls, and none of them finds one that has gone meanwhile.
    agent: false,
    // The address is that of our own listener, whose certificate is for the name by which its clients know it.
    rejectUnauthorized: false,
  } as const;
  return new Promise((resolve, reject) => {
    const request: ClientRequest = isSecure ? requestSecure(options) : requestPlain(options);
    request.on('response', resolve);
    // Stays for an error that comes after the answer, which its reader is told of, too.
    request.on('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code ?? error.message;
      reject(new GatewayError('upstream_error', `The gateway gave no answer on ${url.origin} (${reason}).`));
    });
    request.end(call.body ?? undefined);
  });
}
