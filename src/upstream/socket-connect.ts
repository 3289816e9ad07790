/** The connection of a WebSocket toward an upstream. */
import { connect, type Socket } from 'node:net';
import type { Origin } from './origin.js';
import { connectSecure, type SecureProfiles } from './secure.js';

/** Plain connections share it: what one read brings is dealt with before the next. */
const readBuffer = Buffer.allocUnsafeSlow(128 * 1024);

export interface RawListener {
  /** What is written from now on goes to the upstream and to nobody else. */
  onReady(): void;
  /**
   * The first `length` bytes are what one read brought. They are valid until this returns.
   * @returns false to stop reading
   */
  onRead(bytes: Buffer, length: number): boolean;
}

/** Opens a connection. Throws when Node refuses the origin. */
export function connectRaw(origin: Origin, profiles: SecureProfiles, listener: RawListener): Socket {
  const { host, port } = origin;
  if (!origin.secure) {
    const callback = (length: number, bytes: Uint8Array): boolean => listener.onRead(bytes as Buffer, length);
    const raw = connect({ host, port, noDelay: true, onread: { buffer: readBuffer, callback } });
    return raw.on('connect', () => listener.onReady());
  }
  // Read as a stream: decrypted bytes may come while those of another connection are being dealt with, and a buffer
  // for each of thousands of sessions would be idle most of the time.
  const raw = connectSecure(origin, profiles(origin));
  raw.on('secureConnect', () => listener.onReady());
  return raw.on('data', (bytes: Buffer) => {
    if (!listener.onRead(bytes, bytes.length)) raw.pause();
  });
}
