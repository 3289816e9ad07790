import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { GatewayError } from '../errors.js';

/** A call as an operator wrote it. */
export interface GatewayCall {
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
export function callGateway(
  gateway: string,
  call: GatewayCall,
  signal: AbortSignal,
): Promise<IncomingMessage> {
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
