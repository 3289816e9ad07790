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
/** Maximum length of the head of an unmasked frame. */
const maxHeadBytes = 10;
/** Maximum payload of a control frame (RFC 6455 section 5.5). */
const maxControlBytes = 125;
/**
 * Initial buffer for a message that did not arrive in one read. Memory is not allocated for an announced length alone.
 */
const firstBytes = 16 * 1024;

/** Why data cannot be accepted, with the close code to send. */
interface Unreadable extends SocketFault {
  readonly code: number;
}

const invalid: Unreadable = {
  code: closeCode.protocolError,
  reason: 'malformed_answer',
  detail: 'a frame against RFC 6455',
};
/** A text that is not UTF-8 (RFC 6455 section 8.1). If it were passed on, clients would blame the gateway. */
const notUtf8: Unreadable = {
  code: closeCode.notUtf8,
  reason: 'malformed_answer',
  detail: 'a text that is not UTF-8',
};
const messageTooLarge: Unreadable = {
  code: closeCode.tooBig,
  reason: 'answer_too_large',
  detail: 'a message that is too large',
};
/** There is no room for a message at present. */
export const noRoom: Unreadable = {
  code: closeCode.tryLater,
  reason: 'no_room',
  detail: 'a message found no room',
};
const nothing = Buffer.alloc(0);

/**
 * The bytes of each read are passed to `begin`, after which `next` returns what it finds until it returns `more`. A
 * message that arrived in one read and one frame is a view of that read; any other has its own memory.
 */
export class FrameReader {
  /** The message, or the payload of a control frame (without the code, for `close`). */
  payload: Buffer = nothing;
  isBinary = false;
  /** For `close`, the code of the close frame, or 1005 if it has none. For `fault`, the code to send. */
  code = 0;
  /** Set for `fault`. */
  fault: SocketFault | null = null;
  /** Offset of the first unprocessed byte. */
  at = 0;
  /** Memory of an incomplete message, in bytes. */
  keptBytes = 0;

  readonly #maxMessageBytes: number;
  readonly #hasRoom: (bytes: number) => boolean;
  #bytes: Buffer = nothing;
  #end = 0;
  /** Head of a frame that did not arrive in one read. */
  readonly #head = Buffer.allocUnsafe(maxHeadBytes);
  #headLength = 0;
  /** Opcode of the current frame, or -1 between frames. */
  #opcode = -1;
  #isLast = false;
  /** Bytes of the current frame's payload that have not arrived. */
  #left = 0;
  /** First opcode of the current message, or 0. */
  #kind = 0;
  /** The part received so far of a message in several frames or reads. */
  #message: Buffer | null = null;
  #messageLength = 0;
  #discards = false;
  #control: Buffer | null = null;
  #controlLength = 0;

  /**
   * @param hasRoom called before `keptBytes` grows, where false causes the fault `noRoom`, and when `keptBytes` is 0
   *   again
   */
  constructor(maxMessageBytes: number, hasRoom: (bytes: number) => boolean) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#hasRoom = hasRoom;
  }

  /** Discards messages from now on: only control frames are read. */
  discard(): void {
    this.#discards = true;
    this.#letGo();
  }

  /** Sets the bytes to read: `[start, end)` of a read. */
  begin(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.at = start;
    this.#end = end;
  }

  /** Returns what follows. Must not be called after `close` or `fault`. */
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
    // When messages are discarded, the payload is only a part of the message.
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
    // Servers must not mask, and no extension was negotiated.
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
    if (opcode < close && this.#messageLength + length > this.#maxMessageBytes)
      return this.#refuse(messageTooLarge);
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

  /** @returns false when there is no room for the bytes */
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
      // For the last frame of a message, the remaining size is known.
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

/** @returns the length of the head that begins at `at`, as far as it can be determined */
function headSize(bytes: Buffer, at: number, end: number): number {
  if (end - at < 2) return 2;
  const length = (bytes[at + 1] as number) & ~masked;
  if (length === 126) return 4;
  return length === 127 ? maxHeadBytes : 2;
}

/**
 * Maximum length of a close reason: a control frame holds 125 bytes (RFC 6455 section 5.5), of which two are the code.
 */
const maxReasonBytes = 123;

/**
 * Returns the payload of a close frame that reports how the other side of a relay ended. For 1005, a close frame
 * without a code, the payload is empty as well. All other codes that may not be sent are replaced by 1011, since the
 * end was not orderly: 1006 and 1015 stand for an end without a close frame, and the rest are undefined or out of
 * range. A reason that is too long is cut between two characters.
 */
export function closePayload(code: number, reason: string | Buffer): Buffer {
  if (code === closeCode.noCode) return nothing;
  const text = cut(typeof reason === 'string' ? Buffer.from(reason) : reason);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(maySend(code) ? code : closeCode.internal);
  text.copy(payload, 2);
  return payload;
}

/** Whether a close frame may contain the code (RFC 6455 section 7.4). */
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
