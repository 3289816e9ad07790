/** The opening handshake with an upstream (RFC 6455 section 4.1): the request, and the evaluation of the answer. */
import { createHash, randomBytes } from 'node:crypto';
import { type HeadLines, headerLine, joinLines, requestLine } from '../wire/head.js';
import { AnswerReader, type ParsedHead } from './answer.js';
import type { SocketRequest } from './socket-types.js';

/** Fields that belong to the handshake itself, or that would give it a body. */
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

const upgradeLines: HeadLines = joinLines(
  headerLine('upgrade', 'websocket'),
  headerLine('connection', 'Upgrade'),
  headerLine('sec-websocket-version', '13'),
);

const acceptSalt = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export interface Handshake {
  /** The whole request. */
  readonly text: string;
  /** Required value of `sec-websocket-accept`. */
  readonly accept: string;
}

/**
 * Builds the request.
 * @throws {GatewayError} `internal_error` if the target or a header cannot be written
 */
export function handshakeOf(request: SocketRequest): Handshake {
  const key = randomBytes(16).toString('base64');
  let lines = joinLines(
    requestLine('GET', request.path),
    headerLine('host', request.origin.authority),
    upgradeLines,
    headerLine('sec-websocket-key', key),
  );
  for (const [name, value] of request.headers) {
    const lower = name.toLowerCase();
    if (ownFields.has(lower) || lower.startsWith('sec-websocket-')) continue;
    lines = joinLines(lines, headerLine(name, value));
  }
  const accept = createHash('sha1')
    .update(key + acceptSalt)
    .digest('base64');
  return { text: `${lines}\r\n`, accept };
}

/** Maximum number of bytes kept of a refusal's body. */
const maxRefusalBytes = 64 * 1024;

/** State of an answer. A refusal is `declined` until its body is complete, then `over`. */
type Answered = 'more' | 'open' | 'malformed' | 'declined' | 'over';

/** Parses the answer to an upgrade: an acceptance, or another answer with the start of its body. No I/O. */
export class UpgradeAnswer {
  /** Head of an answer that refuses. */
  head: ParsedHead | null = null;
  /** What is wrong with a malformed answer. */
  problem = '';
  /** Offset of the first byte after the head of an answer that accepts. */
  next = 0;
  readonly #accept: string;
  readonly #reader = new AnswerReader();
  readonly #pieces: Buffer[] = [];
  #size = 0;

  constructor(handshake: Handshake) {
    this.#accept = handshake.accept;
    this.#reader.begin(false, true);
  }

  /** Parses the bytes of one read. */
  read(bytes: Buffer, length: number): Answered {
    if (this.head !== null) return this.#readBody(bytes, 0, length);
    const reader = this.#reader;
    const head = reader.readHead(bytes, length);
    if (head === null) return reader.problem === null ? 'more' : this.#refuse(reader.problem);
    this.next = reader.next;
    if (head.status === 101) return this.#readAcceptance(head);
    this.head = head;
    return this.#readBody(bytes, reader.next, length);
  }

  /** Returns the part of a refusal's body that has arrived. */
  body(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  #readAcceptance(head: ParsedHead): Answered {
    if (head.get('upgrade')?.toLowerCase() !== 'websocket') return this.#refuse('switch to another protocol');
    if (head.get('sec-websocket-accept') !== this.#accept) {
      return this.#refuse('wrong or missing sec-websocket-accept');
    }
    if (head.get('sec-websocket-extensions') !== null) {
      return this.#refuse('an extension that was not offered');
    }
    // RFC 6455 section 4.2.2: without a subprotocol, the header is absent; an empty value is tolerated.
    if (head.get('sec-websocket-protocol')) return this.#refuse('a subprotocol that was not offered');
    return 'open';
  }

  #readBody(bytes: Buffer, start: number, end: number): Answered {
    const reader = this.#reader;
    const size = reader.readBody(bytes, start, end);
    if (size > 0) {
      const from = reader.payloadStart;
      const more = Math.min(size, maxRefusalBytes - this.#size);
      this.#pieces.push(Buffer.from(bytes.subarray(from, from + more)));
      this.#size += more;
    }
    // A malformed or truncated body ends the answer as well: the status is sufficient.
    return size === -1 || reader.done || this.#size === maxRefusalBytes ? 'over' : 'declined';
  }

  #refuse(problem: string): Answered {
    this.problem = problem;
    return 'malformed';
  }
}
