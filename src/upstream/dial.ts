/** How a connection to an origin comes about: directly or through a proxy, plain or in TLS. */
import { connect, type OnReadOpts, type Socket } from 'node:net';
import { type Guarded, guard, handFault } from '../errors.js';
import type { Resolver } from './address.js';
import { createNameCache, type NameCache, type StaleNames } from './names.js';
import type { Origin } from './origin.js';
import { connectSecure, createSecureProfiles, type SecureProfiles, secureTunnel } from './secure.js';
import { lateTunnel, openTunnel } from './tunnel.js';

/** How the bytes of a direct connection are read. Those of a tunnel are read as a stream. */
export interface Reading {
  /** For plain connections, which share it: what one read brings is dealt with before the next. */
  readonly sharedBuffer: Buffer;
  /**
   * Size of a TLS connection's own buffer: decrypted data may come while another connection's read is being dealt with.
   * 0 to read it as a stream.
   */
  readonly ownBytes: number;
}

/** What hears of a connection. Nothing but `onSocket` is called before `dial` has returned. */
export interface DialListener extends Guarded {
  /** The connection, or what takes its place: a tunnel is first a connection to the proxy. It is to be destroyed at the end. */
  onSocket(socket: Socket): void;
  /** The origin has accepted a connection of TCP, or the proxy says so: what fails until `onReady` is the TLS handshake. */
  onTransport(): void;
  /** What is written from now on goes to the origin and to nobody else. */
  onReady(): void;
  /** There is no tunnel through the proxy: nothing else follows. @param detail for the log */
  onNoTunnel(reason: NoConnection, detail: string): void;
  /**
   * The first `length` bytes are what one read brought. They are valid until this returns.
   * @returns false to stop reading
   */
  onRead(bytes: Buffer, length: number): boolean;
  onPeerEnd(): void;
  onSocketError(error: NodeJS.ErrnoException): void;
  onSocketClose(): void;
}

/** Opens a connection. Throws when Node refuses the address or a PEM text. */
export function dial(origin: Origin, dialer: Dialer, reading: Reading, listener: DialListener): void {
  if (origin.proxy !== null) {
    dialThrough(origin, origin.proxy, dialer, listener);
    return;
  }
  const isBuffered = !origin.secure || reading.ownBytes > 0;
  const onread: OnReadOpts | undefined = isBuffered
    ? {
        buffer: origin.secure ? Buffer.allocUnsafeSlow(reading.ownBytes) : reading.sharedBuffer,
        // As `guard` has it, but with no call between: it runs for each read.
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

/** Of the system, where it has no descriptor or memory left for one more connection of this host. */
const ownShortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

type NoConnection = 'connect_failed' | 'proxy_failed' | 'queue_full';

/**
 * Why there is no connection: what this host has none left of is no failure of the upstream's, or of the proxy's before it,
 * which other calls still reach.
 * @param otherwise what it is else
 */
export function unconnectedReason(
  error: NodeJS.ErrnoException | null,
  otherwise: NoConnection = 'connect_failed',
): NoConnection {
  return ownShortages.has(error?.code ?? '') ? 'queue_full' : otherwise;
}

/** Why there is no connection in time. @param isTransportUp `onTransport` has been called */
export function lateDetail({ proxy }: Origin, isTransportUp: boolean): string {
  return proxy === null || isTransportUp ? 'no connection in time' : lateTunnel(proxy);
}

function dialThrough(
  origin: Origin,
  proxy: NonNullable<Origin['proxy']>,
  dialer: Dialer,
  listener: DialListener,
): void {
  // What is wrong with its PEM texts is told before anything is sent.
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

/** @param ready the event at which it is ready; null where it is */
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
  // What a paused stream still holds would be lost with it.
  const readRest = (): void => {
    socket.off('data', onData);
    for (let rest = socket.read() as Buffer | null; rest !== null; rest = socket.read() as Buffer | null)
      listener.onRead(rest, rest.length);
  };
  socket.on('data', onData);
  socket.on('error', guard('upstream', listener, readRest));
  // A tunnel was paused for whoever reads it now.
  socket.resume();
}

/** What all new connections of a worker to its upstreams share: the addresses of names, and the settings of TLS. */
export interface Dialer {
  readonly names: NameCache;
  readonly secureProfiles: SecureProfiles;
}

/** @param resolve in place of the system's resolver */
export function createDialer(resolve?: Resolver, staleNames?: StaleNames): Dialer {
  return { names: createNameCache(resolve, staleNames), secureProfiles: createSecureProfiles() };
}
