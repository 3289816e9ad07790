/** Opens connections to origins: direct or through a proxy, plain or over TLS. */
import { connect, type OnReadOpts, type Socket } from 'node:net';
import { type Guarded, guard, handFault } from '../errors.js';
import type { Resolver } from './address.js';
import { createNameCache, type NameCache, type StaleNames } from './names.js';
import type { Origin } from './origin.js';
import { connectSecure, createSecureProfiles, type SecureProfiles, secureTunnel } from './secure.js';
import { lateTunnel, openTunnel } from './tunnel.js';

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
  return proxy === null || isTransportUp ? 'no connection in time' : lateTunnel(proxy);
}

function dialThrough(
  origin: Origin,
  proxy: NonNullable<Origin['proxy']>,
  dialer: Dialer,
  listener: DialListener,
): void {
  // Throws for a broken PEM text before anything is sent.
  if (origin.secure) dialer.secureProfiles(origin);
  const connection = openTunnel(proxy, origin, dialer, {
    onTunnel(tunnel) {
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
    },
    onTunnelFailed: (detail, unconnected) =>
      listener.onNoTunnel(unconnectedReason(unconnected, 'proxy_failed'), detail),
    onFault: (where, fault) => listener.onFault(where, fault),
  });
  listener.onSocket(connection);
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
