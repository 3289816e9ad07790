import { performance } from 'node:perf_hooks';
import type { SocketSettings } from '../../config/types.js';
import { GatewayError, retrySeconds } from '../../errors.js';
import type { HeldPart, SocketRooms } from '../../http/socket.js';

/** What a socket takes that is open and at rest. */
const socketBytes = 16 * 1024;
/** uWS keeps what it has of a closed socket for so long where the client does not end its side. */
const lingerMs = 17_000;
/** So much in messages is worth a look at the memory, whether timers run meanwhile or not. */
const lookBytes = 8 * 1024 * 1024;
/** A message takes as much of a turn as so many bytes do, however short it is. */
const leastMessage = 4096;
/** A turn of the event loop that takes longer is one in which too much has come. */
const longTurnMs = 500;
/** One message counts for no more: the process may have been stopped within it. */
const mostMessageMs = 100;

interface KeyHold {
  sessions: number;
  /** What has come in messages in the turn of the event loop that has this number. */
  turn: number;
  turnBytes: number;
  /** How long its messages have kept the worker in that turn. */
  turnMs: number;
  bytes: number;
  /** Until when it opens no more, of `performance.now()`. */
  barredUntil: number;
  /** Sessions that were closed lately whose connections may be there still. */
  closing: number;
}

/** A key whose sockets were cut for what they held opens none for so long: each would be filled again at once. */
const barredMs = 30_000;

/** The memory of the WebSockets of a worker: what each key has of it, and all of them. */
export class SessionMemory {
  readonly #settings: () => SocketSettings;
  readonly #byKey = new Map<string, KeyHold>();
  #bytes = 0;
  #closing = 0;
  /**
   * What uWS holds of unfinished messages, as far as it was measured; and whether that is so much that it matters whose
   * it is.
   */
  unseenBytes = 0;
  isPressed = false;
  /** Looks at what is held when much has come, since timers may not run for a while then. */
  onMuch: ((now: number) => void) | null = null;
  #turn = 0;
  #turnAt = performance.now();
  /** Bytes of messages since the last look. */
  #arrivedBytes = 0;

  constructor(settings: () => SocketSettings) {
    this.#settings = settings;
  }

  get settings(): SocketSettings {
    return this.#settings();
  }

  /** Bytes that are counted. */
  get bytes(): number {
    return this.#bytes;
  }

  bytesOf(keyId: string): number {
    return this.#byKey.get(keyId)?.bytes ?? 0;
  }

  /**
   * Takes a slot for a session that a key is about to open.
   * @throws {GatewayError} `rate_limit_exceeded` when it has as many as it may, or holds as much; `overloaded` when the
   * worker does
   */
  takeSlot(keyId: string): SessionSlot {
    const { perKey, heldBytes, heldBytesPerKey } = this.#settings();
    const key = this.#of(keyId);
    if (key.sessions >= perKey) throw tooManySessions(perKey);
    const now = performance.now();
    if (key.barredUntil > now) throw barred(key.barredUntil - now);
    if (key.bytes + this.#unseenOf(key) + socketBytes > heldBytesPerKey) throw tooMuch;
    if (this.#bytes + this.unseenBytes + socketBytes > heldBytes) throw full;
    key.sessions++;
    const slot = new SessionSlot(this, keyId, key);
    this.add(keyId, socketBytes);
    return slot;
  }

  /** Lets a key open no sockets for a while: some were cut for what they held. */
  bar(keyId: string): void {
    const key = this.#of(keyId);
    const isBarred = key.barredUntil > 0;
    key.barredUntil = performance.now() + barredMs;
    if (!isBarred) this.#unbarIn(barredMs, keyId, key);
  }

  /** Sockets of the key may be cut again meanwhile, which makes it longer. */
  #unbarIn(ms: number, keyId: string, key: KeyHold): void {
    const look = (): void => {
      const leftMs = key.barredUntil - performance.now();
      if (leftMs > 0) {
        this.#unbarIn(leftMs, keyId, key);
        return;
      }
      key.barredUntil = 0;
      this.#forget(keyId, key);
    };
    setTimeout(look, Math.ceil(ms)).unref();
  }

  /** Timers run: to be called often. */
  turned(now: number): void {
    this.#turn++;
    this.#turnAt = now;
  }

  /**
   * A message of a key has come, or its turn has among those that wait. uWS handles all that its sockets have to read in
   * one turn of the event loop, and reads each again while it is full: only what is done here, and not in a timer, comes
   * in time.
   * @returns false when the turn is a long one, and the key has sent more in it than it may hold, or is why it is long
   */
  arrived(key: KeyHold, bytes: number, now: number): boolean {
    if (key.turn !== this.#turn) {
      key.turn = this.#turn;
      key.turnBytes = 0;
      key.turnMs = 0;
    }
    key.turnBytes += Math.max(bytes, leastMessage);
    this.#arrivedBytes += bytes;
    if (this.#arrivedBytes > lookBytes) {
      this.#arrivedBytes = 0;
      this.onMuch?.(now);
    }
    if (key.turnMs >= longTurnMs) return false;
    return now - this.#turnAt < longTurnMs || key.turnBytes <= this.#settings().heldBytesPerKey;
  }

  /** @returns whether a key may hold so many bytes more */
  hasRoom(keyId: string, bytes: number): boolean {
    return !this.isFullBy(bytes) && this.bytesOf(keyId) + bytes <= this.#settings().heldBytesPerKey;
  }

  /** Whether all keys together would hold too much with so many bytes more, whoever's they are. */
  isFullBy(bytes: number): boolean {
    return this.#bytes + bytes > this.#settings().heldBytes;
  }

  add(keyId: string, bytes: number): void {
    const key = this.#of(keyId);
    key.bytes += bytes;
    this.#bytes += bytes;
    this.#forget(keyId, key);
  }

  /**
   * A session of the key has ended.
   * @param lingering bytes that stay with its connection for a while; null when that is gone
   */
  end(keyId: string, lingering: number | null): void {
    const key = this.#of(keyId);
    key.sessions--;
    const kept = lingering ?? 0;
    if (lingering !== null) {
      key.closing++;
      this.#closing++;
      setTimeout(() => {
        const later = this.#of(keyId);
        later.closing--;
        this.#closing--;
        this.add(keyId, -kept);
      }, lingerMs).unref();
    }
    this.add(keyId, kept - socketBytes);
  }

  /** What uWS may hold of sockets of the key that were closed within a message: where it matters, their part of all. */
  #unseenOf({ closing }: KeyHold): number {
    if (!this.isPressed || closing === 0) return 0;
    return closing * Math.min(this.#settings().messageBytes, this.unseenBytes / this.#closing);
  }

  #of(keyId: string): KeyHold {
    let key = this.#byKey.get(keyId);
    if (key === undefined) {
      key = { sessions: 0, bytes: 0, closing: 0, barredUntil: 0, turn: 0, turnBytes: 0, turnMs: 0 };
      this.#byKey.set(keyId, key);
    }
    return key;
  }

  #forget(keyId: string, key: KeyHold): void {
    if (key.sessions <= 0 && key.bytes <= 0 && key.closing <= 0 && key.barredUntil === 0)
      this.#byKey.delete(keyId);
  }
}

/** A slot for one session of a key, and what that session holds. */
export class SessionSlot implements SocketRooms {
  readonly #memory: SessionMemory;
  readonly #keyId: string;
  readonly #key: KeyHold;
  #parts: Part[] = [];
  /** The connection may keep what the client has not taken. */
  readonly unread: Part;
  readonly received: HeldPart;
  /** The connection was cut, and nothing is left of it. */
  isCut = false;
  /** What the upstream's connection keeps, which has yet to end. */
  leftBytes = 0;
  #isHeld = true;

  constructor(memory: SessionMemory, keyId: string, key: KeyHold) {
    this.#memory = memory;
    this.#keyId = keyId;
    this.#key = key;
    this.unread = this.part();
    this.received = this.part();
  }

  arrived(bytes: number, now: number): boolean {
    return this.#memory.arrived(this.#key, bytes, now);
  }

  took(ms: number): void {
    this.#key.turnMs += Math.min(ms, mostMessageMs);
  }

  /** @returns a sum that is counted until the slot is given back */
  part(): Part {
    const part = new Part(this.#memory, this.#keyId);
    this.#parts.push(part);
    return part;
  }

  /** Gives it back, with all that is held; a second time does nothing. */
  give(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    const lingering = this.leftBytes + (this.isCut ? 0 : this.unread.bytes);
    for (const part of this.#parts) part.end();
    this.#parts = [];
    this.#memory.end(this.#keyId, this.isCut && lingering === 0 ? null : lingering);
  }
}

class Part implements HeldPart {
  bytes = 0;
  readonly #memory: SessionMemory;
  readonly #keyId: string;
  #ended = false;

  constructor(memory: SessionMemory, keyId: string) {
    this.#memory = memory;
    this.#keyId = keyId;
  }

  hold(bytes: number): boolean {
    const more = bytes - this.bytes;
    if (more === 0 || this.#ended) return true;
    if (more > 0 && !this.#memory.hasRoom(this.#keyId, more)) return false;
    this.bytes = bytes;
    this.#memory.add(this.#keyId, more);
    return true;
  }

  end(): void {
    this.hold(0);
    this.#ended = true;
  }
}

// Made once: a flood of refusals pays for no stack traces.
const tooMuch = new GatewayError(
  'rate_limit_exceeded',
  'The WebSockets of this key use all the memory that they may: close some, or read waiting messages.',
  { retryAfter: 10, limit: 'sockets' },
);
export const full = new GatewayError(
  'overloaded',
  'The WebSockets of this gateway use all the memory that they may: try again shortly.',
  { retryAfter: 5 },
);

function tooManySessions(most: number): GatewayError {
  return new GatewayError(
    'rate_limit_exceeded',
    `This key has ${most} sessions open, as many as it may: close one first.`,
    { retryAfter: 10, limit: 'sockets' },
  );
}

function barred(leftMs: number): GatewayError {
  const seconds = retrySeconds(leftMs);
  return new GatewayError(
    'rate_limit_exceeded',
    `WebSockets of this key were closed for what their unfinished messages held: it may open others in ${seconds} s.`,
    { retryAfter: seconds, limit: 'sockets' },
  );
}
