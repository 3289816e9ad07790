/** Opens connections to origins: direct or through a proxy, plain or over TLS. */
import { connect, type OnReadOpts, type Socket } from 'node:net';
import { type Guarded, guard, handFault } from '../errors.js';
import { formatAuthority } from '../wire/authority.js';
import { headerLine, joinLines, noLines } from '../wire/head.js';
import type { Resolver } from './address.js';
import { AnswerReader } from './answer.js';
import { createNameCache, type NameCache, type StaleNames } from './names.js';
import type { EgressProxy, Origin } from './origin.js';
import {
  connectSecure,
  createSecureProfiles,
  type SecurePeer,
  type SecureProfiles,
  secureTunnel,
  tlsFailureDetail,
} from './secure.js';

/** Read buffers of direct connections. Tunnels are read as streams. */
export interface Reading {
  /** Buffer that all plain connections share, since each read is processed before the next. */
  readonly sharedBuffer: Buffer;
  /**
   * Size of a TLS connection's own buffer, or 0 to read the connection as a stream. The buffer cannot be shared:
   * decrypted data may arrive while another connection's read is being processed.
   */
  readonly ownBytes: number;
}

/** Receives the events of a connection. Only `onSocket` is called before `dial` has returned. */
export interface DialListener extends Guarded {
  /**
   * Called with the socket of the connection, and again if another takes its place: a tunnel starts as a connection to
   * the proxy. The listener has to destroy the last one at the end.
   */
  onSocket(socket: Socket): void;
  /**
   * Called when the origin has accepted a TCP connection, or when the proxy reports that. A failure between this and
   * `onReady` is one of the TLS handshake.
   */
  onTransport(): void;
  /** Called when the connection is ready: everything written from now on goes to the origin only. */
  onReady(): void;
  /** Called when there is no tunnel through the proxy, as the last event. @param detail for the log */
  onNoTunnel(reason: NoConnection, detail: string): void;
  /**
   * Called with the bytes of one read: the first `length` bytes, valid until this returns.
   * @returns false to stop reading
   */
  onRead(bytes: Buffer, length: number): boolean;
  onPeerEnd(): void;
  onSocketError(error: NodeJS.ErrnoException): void;
  onSocketClose(): void;
}

/** Opens a connection. Throws if Node refuses the address or a PEM text. */
export function dial(origin: Origin, dialer: Dialer, reading: Reading, listener: DialListener): void {
  if (origin.proxy !== null) {
    dialThrough(origin, origin.proxy, dialer, listener);
    return;
  }
  const isBuffered = !origin.secure || reading.ownBytes > 0;
  const onread: OnReadOpts | undefined = isBuffered
    ? {
        buffer: origin.secure ? Buffer.allocUnsafeSlow(reading.ownBytes) : reading.sharedBuffer,
        // Inlines `guard`, which would cost one more call per read.
        callback: (length, buffer) => {
          try {
            return listener.onRead(buffer as Buffer, length);
          } catch (fault) {
            handFault(listener, 'upstream', fault);
            return false;
          }
        },
      }
    : undefined;
  const { host, port } = origin;
  const socket = origin.secure
    ? connectSecure(origin, dialer, onread)
    : connect({ host, port, lookup: dialer.names.lookup, noDelay: true, onread: onread as OnReadOpts });
  listener.onSocket(socket);
  socket.on(
    'connect',
    guard('upstream', listener, () => listener.onTransport()),
  );
  if (!isBuffered) readAsStream(socket, listener);
  hear(socket, origin.secure ? 'secureConnect' : 'connect', listener);
}

/** Error codes of the system when this host has no descriptor or memory left for another connection. */
const ownShortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

type NoConnection = 'connect_failed' | 'proxy_failed' | 'queue_full';

/**
 * Returns why there is no connection. A shortage at this host does not count as a failure of the upstream or its proxy,
 * which other calls still reach.
 * @param otherwise the reason if there is no such shortage
 */
export function unconnectedReason(
  error: NodeJS.ErrnoException | null,
  otherwise: NoConnection = 'connect_failed',
): NoConnection {
  return ownShortages.has(error?.code ?? '') ? 'queue_full' : otherwise;
}

/** Describes why there was no connection in time. @param isTransportUp whether `onTransport` has been called */
export function lateDetail({ proxy }: Origin, isTransportUp: boolean): string {
  if (proxy === null || isTransportUp) return 'no connection in time';
  return failureOf(proxy, 'opened no tunnel in time');
}

function dialThrough(origin: Origin, proxy: EgressProxy, dialer: Dialer, listener: DialListener): void {
  // Throws for a broken PEM text before anything is sent.
  if (origin.secure) dialer.secureProfiles(origin);
  const connection = openTunnel(proxy, origin, dialer, listener, (tunnel) => {
    listener.onTransport();
    if (tunnel.destroyed) return;
    if (!origin.secure) {
      readAsStream(tunnel, listener);
      hear(tunnel, null, listener);
      listener.onReady();
      return;
    }
    const socket = secureTunnel(tunnel, origin, dialer.secureProfiles);
    listener.onSocket(socket);
    readAsStream(socket, listener);
    hear(socket, 'secureConnect', listener);
  });
  listener.onSocket(connection);
}

/**
 * Requests a tunnel to an origin from a proxy with CONNECT (RFC 9110 section 9.3.6). The proxy resolves the origin's name.
 * There is no deadline.
 * @param onTunnel called when the tunnel is open: writes now go to the origin. The socket is paused, and only has a listener
 *   for errors. Either this or `onNoTunnel` of the listener is called, once, even if the owner has destroyed the socket; never
 *   before `openTunnel` has returned
 * @returns the connection to the proxy, to be destroyed when the tunnel is no longer needed
 * @throws Error if Node refuses the proxy's address or PEM text
 */
function openTunnel(
  proxy: EgressProxy,
  origin: Origin,
  dialer: Dialer,
  listener: DialListener,
  onTunnel: (socket: Socket) => void,
): Socket {
  const request = connectRequest(proxy, origin);
  const socket = proxy.secure
    ? connectSecure(securePeer(proxy), dialer)
    : connect({ host: proxy.host, port: proxy.port, lookup: dialer.names.lookup, noDelay: true });
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
    if (!isAsked) dialer.names.forget(proxy.host);
    socket.destroy();
    listener.onNoTunnel(unconnectedReason(unconnected, 'proxy_failed'), failureOf(proxy, words));
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
    onTunnel(socket);
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

/** For the log; contains no credential and no text from the proxy. */
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
function connectRequest({ authorization }: EgressProxy, { host, port }: Origin): string {
  const target = formatAuthority(host, port);
  const lines = joinLines(
    headerLine('host', target),
    authorization === null ? noLines : headerLine('proxy-authorization', authorization),
  );
  return `CONNECT ${target} HTTP/1.1\r\n${lines}\r\n`;
}

function securePeer(proxy: EgressProxy): SecurePeer {
  return { ...proxy, serverName: proxy.host, clientCertificate: null, verify: true, isKept: true };
}

/** Subscribes to the events of a socket. @param ready the event after which it is ready, or null if it is already */
function hear(socket: Socket, ready: 'connect' | 'secureConnect' | null, listener: DialListener): void {
  if (ready !== null)
    socket.on(
      ready,
      guard('upstream', listener, () => listener.onReady()),
    );
  socket.on(
    'end',
    guard('upstream', listener, () => listener.onPeerEnd()),
  );
  const onError = (error: NodeJS.ErrnoException): void => listener.onSocketError(error);
  socket.on('error', guard('upstream', listener, onError));
  socket.on(
    'close',
    guard('upstream', listener, () => listener.onSocketClose()),
  );
}

function readAsStream(socket: Socket, listener: DialListener): void {
  const read = (bytes: Buffer): void => {
    if (!listener.onRead(bytes, bytes.length)) socket.pause();
  };
  const onData = guard('upstream', listener, read);
  // After an error, data that a paused stream still holds would be lost.
  const readRest = (): void => {
    socket.off('data', onData);
    for (let rest = socket.read() as Buffer | null; rest !== null; rest = socket.read() as Buffer | null)
      listener.onRead(rest, rest.length);
  };
  socket.on('data', onData);
  socket.on('error', guard('upstream', listener, readRest));
  // A tunnel is handed over paused.
  socket.resume();
}

/** State that all connections of a worker to its upstreams share: addresses of names, and TLS settings. */
export interface Dialer {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/** @param resolve replaces the system's resolver */
export function createDialer(resolve?: Resolver, staleNames?: StaleNames): Dialer {
  return { names: createNameCache(resolve, staleNames), secureProfiles: createSecureProfiles() };
}
