/** The opening handshake with an upstream (RFC 6455 section 4.1): what is sent, and what is made of the answer. */
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connectSecure, type SecureProfiles } from './secure.js';
import type { SocketRequest } from './socket-types.js';
import type { ResponseHead } from './types.js';

/** Fields that the handshake itself is made of, or that would give it a body. */
const ownFields = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** RFC 9112 section 3.2: white space would end the target, and a line feed the line. */
const target = /^\/[\x21-\x7e]*$/;

/** Opens the connection; read as a stream. Throws when Node refuses the origin. */
export function connectStream({ origin }: SocketRequest, profiles: SecureProfiles): Socket {
  return origin.secure
    ? connectSecure(origin, profiles(origin))
    : connect({ host: origin.host, port: origin.port, noDelay: true });
}

/** The header lines beside those that `ws` adds. Throws when the target cannot be written. */
export function handshakeHeaders(request: SocketRequest): Record<string, string | string[]> {
  if (!target.test(request.path)) throw new Error('the path cannot be written');
  const headers: Record<string, string | string[]> = Object.create(null);
  headers.host = request.origin.authority;
  // Not through `ws`: it refuses an upstream that chooses none.
  if (request.protocols.length > 0) headers['sec-websocket-protocol'] = request.protocols.join(', ');
  for (const [name, value] of request.headers) {
    const key = name.toLowerCase();
    if (ownFields.has(key) || key.startsWith('sec-websocket-')) continue;
    const before = headers[key];
    if (before === undefined) headers[key] = value;
    else if (typeof before === 'string') headers[key] = [before, value];
    else before.push(value);
  }
  return headers;
}

/**
 * Takes the subprotocol that an upstream chose out of its answer, where `ws` would refuse it as one not asked for.
 * @returns it, empty for none; null when it was not offered
 */
export function takeProtocol(answer: IncomingMessage, offered: readonly string[]): string | null {
  const chosen = answer.headers['sec-websocket-protocol'];
  if (chosen === undefined) return '';
  delete answer.headers['sec-websocket-protocol'];
  return offered.includes(chosen) ? chosen : null;
}

/** The head of an answer that is no upgrade. */
export class RefusalHead implements ResponseHead {
  readonly status: number;
  readonly fields: readonly string[];
  readonly contentType: string | null;
  readonly contentLength: number;

  constructor(answer: IncomingMessage) {
    this.status = answer.statusCode ?? 0;
    this.fields = answer.rawHeaders.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text));
    this.contentType = this.get('content-type');
    const length = this.get('content-length');
    if (this.status === 204 || this.status === 304) this.contentLength = 0;
    else this.contentLength = length === null ? -1 : Number(length);
  }

  get(name: string): string | null {
    for (let i = 0; i < this.fields.length; i += 2) {
      if (this.fields[i] === name) return this.fields[i + 1] ?? null;
    }
    return null;
  }
}

/** The most of a refusal's body that is kept. */
const maxBodyBytes = 64 * 1024;

/** Reads the beginning of a refusal's body. */
export class RefusalBody {
  readonly #pieces: Buffer[] = [];
  #size = 0;

  /** @param onOver hears when all that will be kept has come, perhaps more than once */
  constructor(answer: IncomingMessage, onOver: () => void) {
    answer.on('data', (piece: Buffer) => {
      this.#pieces.push(piece);
      this.#size += piece.length;
      if (this.#size >= maxBodyBytes) onOver();
    });
    answer.on('end', onOver);
    // Cut off: its status says enough.
    answer.on('error', onOver);
    answer.on('close', onOver);
  }

  /** What has come so far. */
  take(): Buffer {
    return Buffer.concat(this.#pieces, Math.min(this.#size, maxBodyBytes));
  }
}
