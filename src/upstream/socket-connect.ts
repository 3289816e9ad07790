/** The connection of a WebSocket toward an upstream. */
import { connect, type Socket } from 'node:net';
import { type Guarded, guard } from '../errors.js';
import type { Dialer } from './dialer.js';
import type { Origin } from './origin.js';
import { connectSecure } from './secure.js';

/** Plain connections share it: what one read brings is dealt with before the next. */
const readBuffer = Buffer.allocUnsafeSlow(128 * 1024);

export interface RawListener extends Guarded {
  /** What is written from now on goes to the upstream and to nobody else. */
  onReady(): void;
  /**
   * The first `length` bytes are what one read brought. They are valid until this returns.
   * @returns false to stop reading
   */
  onRead(bytes: Buffer, length: number): boolean;
}

/** Opens a connection. Throws when Node refuses the origin. */
export function connectRaw(origin: Origin, dialer: Dialer, listener: RawListener): Socket {
  const { host, port } = origin;
  const onReady = guard('upstream', listener, () => listener.onReady(), undefined);
  if (!origin.secure) {
    const read = (length: number, bytes: Uint8Array): boolean => listener.onRead(bytes as Buffer, length);
    const callback = guard('upstream', listener, read, false);
    const raw = connect({
      host,
      port,
      lookup: dialer.names.lookup,
      noDelay: true,
      onread: { buffer: readBuffer, callback },
    });
    return raw.on('connect', onReady);
  }
  // Read as a stream: decrypted bytes may come while those of another connection are being dealt with, and a buffer
  // for each of thousands of sessions would be idle most of the time.
  const raw = connectSecure(origin, dialer);
  raw.on('secureConnect', onReady);
  const read = (bytes: Buffer): void => {
    if (!listener.onRead(bytes, bytes.length)) raw.pause();
  };
  return raw.on('data', guard('upstream', listener, read, undefined));
}
