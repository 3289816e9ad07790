/** Reads the frames of an upstream (RFC 6455 section 5) into messages. No I/O. */
import { isUtf8 } from 'node:buffer';
import { closeCode } from '../wire/close-code.js';
import type { SocketFault } from './socket-types.js';

/** What `next` found. */
type Found = 'more' | 'message' | 'ping' | 'pong' | 'close' | 'fault';

const continuation = 0;
const text = 1;
const binary = 2;
const close = 8;
const ping = 9;
const pong = 10;

const fin = 0x80;
const reserved = 0x70;
const masked = 0x80;
/** Of a frame that is not masked. */
const maxHeadBytes = 10;
/** What a control frame may hold (RFC 6455 section 5.5). */
const maxControlBytes = 125;
/** What a message that did not come in one read gets to begin with: a length that is announced costs nothing yet. */
const firstBytes = 16 * 1024;

/** Why what was read cannot be taken, with the close code that says so. */
interface Unreadable extends SocketFault {
  readonly code: number;
}

const invalid: Unreadable = {
  code: closeCode.protocolError,
  reason: 'malformed_answer',
  detail: 'a frame against RFC 6455',
};
/** Of a text (RFC 6455 section 8.1): a client would take the gateway for who has sent it. */
const notUtf8: Unreadable = {
  code: closeCode.notUtf8,
  reason: 'malformed_answer',
  detail: 'a text that is not UTF-8',
};
const tooLarge: Unreadable = {
  code: closeCode.tooBig,
  reason: 'answer_too_large',
  detail: 'a message that is too large',
};
/** There is no room for it now. */
export const noRoom: Unreadable = {
  code: closeCode.tryLater,
  reason: 'no_room',
  detail: 'a message found no room',
};
const nothing = Buffer.alloc(0);

/**
 * The bytes of one read after the other are given to `begin`, and `next` tells what is in them until it says `more`.
 * A message that came in one read and one frame is a view of that read; another has memory of its own.
 */
export class FrameReader {
  /** The message, or what a control frame holds (without the code, for `close`). */
  payload: Buffer = nothing;
  isBinary = false;
  /** The code of a close frame, 1005 for none; or the one that says what is wrong, for `fault`. */
  code = 0;
  /** For `fault`. */
  fault: SocketFault | null = null;
  /** Where the bytes begin that have not been looked at. */
  at = 0;
  /** Memory that a message has whose end has not come. */
  keptBytes = 0;

  readonly #maxMessageBytes: number;
  readonly #hasRoom: (bytes: number) => boolean;
  #bytes: Buffer = nothing;
  #end = 0;
  /** Head of a frame that did not come in one read. */
  readonly #head = Buffer.allocUnsafe(maxHeadBytes);
  #headLength = 0;
  /** The running frame: -1 between two of them. */
  #opcode = -1;
  #isLast = false;
  /** Bytes of its payload that are still to come. */
  #left = 0;
  /** The running message's first opcode, or 0. */
  #kind = 0;
  /** What there is of a message in several frames or reads. */
  #message: Buffer | null = null;
  #messageLength = 0;
  #discards = false;
  #control: Buffer | null = null;
  #controlLength = 0;

  /** @param hasRoom is asked before `keptBytes` grows, and told when it is 0 again; `false` makes the fault `noRoom` */
  constructor(maxMessageBytes: number, hasRoom: (bytes: number) => boolean) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#hasRoom = hasRoom;
  }

  /** From here on nothing is kept of messages: only what control frames hold is wanted. */
  discard(): void {
    this.#discards = true;
    this.#letGo();
  }

  /** Gives it the bytes `[start, end)` of a read. */
  begin(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.at = start;
    this.#end = end;
  }

  /** Nothing is to be asked for after `close` and `fault`. */
  next(): Found {
    for (;;) {
      if (this.#opcode === -1) {
        const found = this.#readHead();
        if (found !== null) return found;
      }
      const start = this.at;
      const size = Math.min(this.#left, this.#end - start);
      this.at += size;
      this.#left -= size;
      if (this.#opcode >= close) {
        const found = this.#takeControl(start, size);
        if (found !== null) return found;
        continue;
      }
      if (this.#left === 0 && this.#isLast && this.#message === null) {
        this.payload = this.#bytes.subarray(start, this.at);
        return this.#endMessage();
      }
      if (size > 0 && !this.#discards && !this.#append(start, size)) return this.#refuse(noRoom);
      if (this.#left > 0) return 'more';
      this.#opcode = -1;
      if (!this.#isLast) continue;
      this.payload = this.#message?.subarray(0, this.#messageLength) ?? nothing;
      return this.#endMessage();
    }
  }

  #endMessage(): Found {
    this.#opcode = -1;
    this.isBinary = this.#kind === binary;
    this.#kind = 0;
    this.#letGo();
    // Of a message that is not kept the payload is a part.
    const isWhole = this.isBinary || this.#discards || isUtf8(this.payload);
    return isWhole ? 'message' : this.#refuse(notUtf8);
  }

  #letGo(): void {
    this.#message = null;
    this.#messageLength = 0;
    if (this.keptBytes === 0) return;
    this.keptBytes = 0;
    this.#hasRoom(0);
  }

  /** @returns null when the frame's payload is next */
  #readHead(): Found | null {
    let bytes = this.#bytes;
    let at = this.at;
    let end = this.#end;
    if (at === end) return 'more';
    const before = this.#headLength;
    if (before > 0) {
      bytes = this.#head;
      end = before + this.#bytes.copy(bytes, before, at, Math.min(end, at + maxHeadBytes - before));
      at = 0;
    }
    const size = headSize(bytes, at, end);
    if (end - at < size) {
      if (before === 0) bytes.copy(this.#head, 0, at, end);
      this.#headLength = end - at;
      this.at = this.#end;
      return 'more';
    }
    const first = bytes[at++] as number;
    const second = bytes[at++] as number;
    let length = second & ~masked;
    if (length === 126) length = bytes.readUInt16BE(at);
    else if (length === 127) length = bytes.readUInt32BE(at) * 0x1_0000_0000 + bytes.readUInt32BE(at + 4);
    this.#headLength = 0;
    this.at += size - before;
    return this.#enter(first, second, length);
  }

  #enter(first: number, second: number, length: number): Found | null {
    const opcode = first & 0x0f;
    this.#isLast = (first & fin) !== 0;
    // Masked by a server, or with the bits of an extension.
    if ((second & masked) !== 0 || (first & reserved) !== 0) return this.#refuse(invalid);
    switch (opcode) {
      case continuation:
        if (this.#kind === 0) return this.#refuse(invalid);
        break;
      case text:
      case binary:
        if (this.#kind !== 0) return this.#refuse(invalid);
        this.#kind = opcode;
        break;
      case close:
      case ping:
      case pong:
        if (!this.#isLast || length > maxControlBytes) return this.#refuse(invalid);
        break;
      default:
        return this.#refuse(invalid);
    }
    if (opcode < close && this.#messageLength + length > this.#maxMessageBytes) return this.#refuse(tooLarge);
    this.#opcode = opcode;
    this.#left = length;
    return null;
  }

  #takeControl(start: number, size: number): Found | null {
    if (this.#left > 0 || this.#control !== null) {
      this.#control ??= Buffer.allocUnsafe(maxControlBytes);
      this.#controlLength += this.#bytes.copy(this.#control, this.#controlLength, start, start + size);
      if (this.#left > 0) return 'more';
      this.payload = this.#control.subarray(0, this.#controlLength);
      this.#control = null;
      this.#controlLength = 0;
    } else {
      this.payload = this.#bytes.subarray(start, start + size);
    }
    const opcode = this.#opcode;
    this.#opcode = -1;
    if (opcode === ping) return 'ping';
    return opcode === pong ? 'pong' : this.#readClose();
  }

  #readClose(): Found {
    const { payload } = this;
    if (payload.length === 1) return this.#refuse(invalid);
    this.code = payload.length === 0 ? closeCode.noCode : payload.readUInt16BE(0);
    if (payload.length > 0 && !maySend(this.code)) return this.#refuse(invalid);
    this.payload = Buffer.from(payload.subarray(2));
    return 'close';
  }

  /** @returns false when there is no room for it */
  #append(start: number, size: number): boolean {
    const used = this.#messageLength;
    const needed = used + size;
    let message = this.#message;
    if (message === null || message.length < needed) {
      const most = used + size + this.#left;
      const room = Math.min(
        Math.max(2 * (message?.length ?? 0), needed, firstBytes),
        Math.max(this.#maxMessageBytes, needed),
      );
      // What comes after this frame is not known; that it is the last one is.
      const bytes = this.#isLast ? Math.min(room, most) : room;
      if (!this.#hasRoom(bytes)) return false;
      this.keptBytes = bytes;
      const larger = Buffer.allocUnsafeSlow(bytes);
      message?.copy(larger, 0, 0, used);
      message = larger;
      this.#message = message;
    }
    this.#bytes.copy(message, used, start, start + size);
    this.#messageLength = needed;
    return true;
  }

  #refuse(fault: Unreadable): Found {
    this.code = fault.code;
    this.fault = fault;
    return 'fault';
  }
}

/** @returns the length of the head that begins there, as far as it is known yet */
function headSize(bytes: Buffer, at: number, end: number): number {
  if (end - at < 2) return 2;
  const length = (bytes[at + 1] as number) & ~masked;
  if (length === 126) return 4;
  return length === 127 ? maxHeadBytes : 2;
}

/** A control frame holds 125 bytes (RFC 6455 section 5.5), two of which are the code. */
const maxReasonBytes = 123;

/**
 * What a close frame holds that says how the other side of a relay ended. 1005 says that its close frame had no code, so ours has none
 * either. 1006 and 1015 say that it had no close frame at all, and the rest is not defined or out of range: the peer is
 * to know that this was no orderly end, which 1011 says. A reason that is too long is cut between two characters.
 */
export function closePayload(code: number, reason: string | Buffer): Buffer {
  if (code === closeCode.noCode) return nothing;
  const text = cut(typeof reason === 'string' ? Buffer.from(reason) : reason);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(maySend(code) ? code : closeCode.internal);
  text.copy(payload, 2);
  return payload;
}

/** Whether a close frame may hold a code (RFC 6455 section 7.4). */
function maySend(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

function cut(reason: Buffer): Buffer {
  if (reason.length <= maxReasonBytes) return reason;
  let end = maxReasonBytes;
  while (end > 0 && ((reason[end] as number) & 0xc0) === 0x80) end--;
  return reason.subarray(0, end);
}
