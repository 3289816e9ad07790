/** Opens tunnels through a proxy with CONNECT (RFC 9110 section 9.3.6). */

import { connect, type Socket } from 'node:net';
import { type Guarded, guard } from '../errors.js';
import { formatAuthority } from '../wire/authority.js';
import { headerLine, joinLines, noLines } from '../wire/head.js';
import { AnswerReader } from './answer.js';
import type { NameCache } from './names.js';
import type { EgressProxy, Origin } from './origin.js';
import { connectSecure, type SecurePeer, type SecureProfiles, tlsFailureDetail } from './secure.js';

/**
 * Exactly one of `onTunnel` and `onTunnelFailed` is called, once, even if the owner has destroyed the socket; never
 * before `openTunnel` has returned.
 */
interface TunnelListener extends Guarded {
  /**
   * Called when the tunnel is open: writes now go to the origin. The socket is paused, and only has a listener for
   * errors.
   */
  onTunnel(socket: Socket): void;
  /**
   * Called when there is no tunnel. The socket is destroyed.
   * @param detail for the log; contains no credential and no text from the proxy
   * @param unconnected why there is no connection to the proxy; null if there was one
   */
  onTunnelFailed(detail: string, unconnected: NodeJS.ErrnoException | null): void;
}

interface Means {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/**
 * Requests a tunnel to an origin from a proxy. The proxy resolves the origin's name. There is no deadline.
 * @returns the connection to the proxy, to be destroyed when the tunnel is no longer needed
 * @throws Error if Node refuses the proxy's address or PEM text
 */
export function openTunnel(
  proxy: EgressProxy,
  origin: Pick<Origin, 'host' | 'port'>,
  means: Means,
  listener: TunnelListener,
): Socket {
  const request = connectRequest(proxy, origin);
  const socket = proxy.secure
    ? connectSecure(securePeer(proxy), means)
    : connect({ host: proxy.host, port: proxy.port, lookup: means.names.lookup, noDelay: true });
  const answer = new ConnectAnswer();
  let isTransportUp = false;
  let isAsked = false;
  let isOver = false;
  const guarded = <Arguments extends unknown[]>(callback: (...args: Arguments) => void) =>
    guard('upstream', listener, callback);
  const fail = (words: string, unconnected: NodeJS.ErrnoException | null = null): void => {
    if (isOver) return;
    isOver = true;
    // The proxy may have moved.
    if (!isAsked) means.names.forget(proxy.host);
    socket.destroy();
    listener.onTunnelFailed(failureOf(proxy, words), unconnected);
  };
  const onReady = (): void => {
    isAsked = true;
    socket.write(request, 'latin1');
  };
  const onData = (bytes: Buffer): void => {
    if (isOver) return;
    const outcome = answer.read(bytes);
    if (outcome === 'more') return;
    if (outcome !== 'open') {
      fail(outcome);
      return;
    }
    isOver = true;
    socket.off('data', data);
    socket.off('end', end);
    socket.off('close', close);
    socket.pause();
    listener.onTunnel(socket);
  };
  const onError = (error: NodeJS.ErrnoException): void => {
    if (isAsked) fail(`broke the connection: ${error.code ?? error.message}`);
    else if (isTransportUp) fail(`could not be trusted: ${tlsFailureDetail(error)}`);
    else fail(`cannot be reached: ${error.code ?? error.message}`, error);
  };
  const data = guarded(onData);
  const end = guarded(() => fail('closed the connection before it answered'));
  const close = end;
  socket.on(
    'connect',
    guarded(() => {
      isTransportUp = true;
    }),
  );
  socket.on(proxy.secure ? 'secureConnect' : 'connect', guarded(onReady));
  socket.on('data', data);
  socket.on('end', end);
  // This listener remains: an error of the connection under the tunnel would otherwise be unhandled.
  socket.on('error', guarded(onError));
  socket.on('close', close);
  return socket;
}

/** Describes the failure of a proxy that took too long. */
export function lateTunnel(proxy: EgressProxy): string {
  return failureOf(proxy, 'opened no tunnel in time');
}

function failureOf(proxy: EgressProxy, words: string): string {
  return `proxy ${words} (${formatAuthority(proxy.host, proxy.port)})`;
}

/** Parses the answer to CONNECT. A head of more than 16 KB is refused. No I/O. */
export class ConnectAnswer {
  readonly #reader = new AnswerReader();

  constructor() {
    this.#reader.begin(false);
  }

  /**
   * Parses the bytes of one read. Bytes after the head are an error: they would be the origin's, before anything was
   * sent to it, and no HTTP or TLS server sends first.
   * @returns `more` while the head is incomplete, `open` for a tunnel, or a description of the error, such as `answered
   *   407`
   */
  read(bytes: Buffer): string {
    const head = this.#reader.readHead(bytes, bytes.length);
    if (head === null) {
      const { problem } = this.#reader;
      return problem === null ? 'more' : `gave a malformed answer: ${problem}`;
    }
    // In a 2xx, fields that would frame a body are ignored (RFC 9110 section 9.3.6).
    if (head.status > 299) return `answered ${head.status}`;
    return this.#reader.next === bytes.length ? 'open' : 'sent bytes behind the head of its answer';
  }
}

/** @throws {GatewayError} `internal_error` if a field cannot be written */
function connectRequest({ authorization }: EgressProxy, origin: Pick<Origin, 'host' | 'port'>): string {
  const target = formatAuthority(origin.host, origin.port);
  const lines = joinLines(
    headerLine('host', target),
    authorization === null ? noLines : headerLine('proxy-authorization', authorization),
  );
  return `CONNECT ${target} HTTP/1.1\r\n${lines}\r\n`;
}

function securePeer(proxy: EgressProxy): SecurePeer {
  return { ...proxy, serverName: proxy.host, clientCertificate: null, verify: true, isKept: true };
}
