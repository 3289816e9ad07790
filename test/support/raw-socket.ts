import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { eventually } from './eventually.js';
import { testKey } from './gateway.js';

export interface FrameShape {
  /** Default: 1, text. */
  readonly opcode?: number;
  readonly fin?: boolean;
  /** Payload length in the frame's head. Default: the actual length. */
  readonly announced?: number | bigint;
  readonly masked?: boolean;
  /** Reserved bits, added to the first byte. */
  readonly reserved?: number;
}

/** Makes a client's frame (RFC 6455 section 5.2), valid or not. Its mask is all zeros. */
export function frame(payload: string | Buffer, shape: FrameShape = {}): Buffer {
  const body = Buffer.from(payload);
  const { opcode = 1, fin = true, announced = body.length, masked = true, reserved = 0 } = shape;
  const head = Buffer.alloc(14);
  head[0] = (fin ? 0x80 : 0) | reserved | opcode;
  const mask = masked ? 0x80 : 0;
  let at = 2;
  if (announced < 126) head[1] = mask | Number(announced);
  else if (announced <= 65_535) {
    head[1] = mask | 126;
    at = head.writeUInt16BE(Number(announced), 2);
  } else {
    head[1] = mask | 127;
    head.writeBigUInt64BE(BigInt(announced), 2);
    at = 10;
  }
  return Buffer.concat([head.subarray(0, masked ? at + 4 : at), body]);
}

interface HeardFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** A WebSocket whose client side is written by hand. */
export interface RawSocket {
  readonly socket: Socket;
  /** Bytes that the gateway has sent and that were read. */
  readonly heard: readonly HeardFrame[];
  /** Resolves with the code of the gateway's close frame once the connection has ended; 1006 for none. */
  readonly closed: Promise<number>;
  send(...frames: readonly Buffer[]): void;
  /** Resolves when this many frames have arrived. */
  until(frames: number): Promise<unknown>;
}

interface RawSocketOptions {
  readonly path?: string;
  readonly key?: string;
}

/**
 * Opens a WebSocket.
 * @throws Error with the answer's status line if the upgrade is refused
 */
export async function openRaw(port: number, options: RawSocketOptions = {}): Promise<RawSocket> {
  const { path = '/v1/realtime?model=m', key = testKey } = options;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  let rest = await upgraded(socket);
  const heard: HeardFrame[] = [];
  let code = 1006;
  const read = (data: Buffer): void => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    for (let found = firstFrame(rest); found !== null; found = firstFrame(rest)) {
      rest = rest.subarray(found.bytes);
      heard.push(found);
      if (found.opcode === 8) code = found.payload.length < 2 ? 1005 : found.payload.readUInt16BE(0);
    }
  };
  read(Buffer.alloc(0));
  socket.on('data', read);
  const closed = new Promise<number>((resolve) => socket.once('close', () => resolve(code)));
  return {
    socket,
    heard,
    closed,
    send: (...frames) => {
      for (const bytes of frames) socket.write(bytes);
    },
    until: (frames) => eventually(() => heard.length >= frames, { what: `${frames} frames` }),
  };
}

async function upgraded(socket: Socket): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n');
    const status = bytes.toString('latin1', 0, Math.max(0, bytes.indexOf('\r\n')));
    if (end !== -1 && !status.includes(' 101 ')) {
      socket.destroy();
      throw new Error(status);
    }
    if (end !== -1) return Buffer.from(bytes.subarray(end + 4));
    const [data] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [unknown];
    if (!Buffer.isBuffer(data)) throw new Error('closed without an answer');
    bytes = Buffer.concat([bytes, data]);
  }
}

function firstFrame(bytes: Buffer): (HeardFrame & { readonly bytes: number }) | null {
  if (bytes.length < 2) return null;
  let length = (bytes[1] as number) & 0x7f;
  let at = 2;
  if (length === 126) {
    if (bytes.length < 4) return null;
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return null;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
  }
  if (bytes.length < at + length) return null;
  const payload = Buffer.from(bytes.subarray(at, at + length));
  return { opcode: (bytes[0] as number) & 0x0f, payload, bytes: at + length };
}
