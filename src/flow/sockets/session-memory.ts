import { performance } from 'node:perf_hooks';
import type { SocketSettings } from '../../config/types.js';
import { GatewayError, retrySeconds } from '../../errors.js';
import type { HeldPart, SocketRooms } from '../../http/socket.js';

/** Memory of an open, idle socket. */
const socketBytes = 16 * 1024;
/** How long uWS keeps a closed socket's buffers if the client does not end its side. */
const lingerMs = 17_000;
/** Bytes of messages after which memory is measured, even if no timer has run. */
const lookBytes = 8 * 1024 * 1024;
/** A shorter message counts as this many bytes, since each takes time of the turn. */
const leastMessage = 4096;
/** A longer turn of the event loop means that too much has arrived in it. */
const longTurnMs = 500;
/** Most time that one message counts for: the process may have been suspended during it. */
const maxMessageMs = 100;

interface KeyHold {
  sessions: number;
  /** Number of the event loop turn to which the next two members belong. */
  turn: number;
  turnBytes: number;
  /** Milliseconds that its messages have kept the worker busy in that turn. */
  turnMs: number;
  bytes: number;
  /** Time of `performance.now()` until which it may open no sockets. */
  barredUntil: number;
  /** Recently closed sessions whose connections may still exist. */
  closing: number;
}

/** How long a key whose sockets were cut for their memory opens none: it would fill each again immediately. */
const barredMs = 30_000;

/** Counts the memory of a worker's WebSockets, per key and in total. */
export class SessionMemory {
  readonly #settings: () => SocketSettings;
  readonly #byKey = new Map<string, KeyHold>();
  #bytes = 0;
  #closing = 0;
  /**
   * Measured bytes that uWS holds of unfinished messages; `isPressed` is true if they are so many that they have to be
   * attributed to keys.
   */
  unseenBytes = 0;
  isPressed = false;
  /** Called when many bytes have arrived, since timers may not run for a while then. */
  onMuch: ((now: number) => void) | null = null;
  #turn = 0;
  #turnAt = performance.now();
  /** Bytes of messages since the last measurement. */
  #arrivedBytes = 0;

  constructor(settings: () => SocketSettings) {
    this.#settings = settings;
  }

  get settings(): SocketSettings {
    return this.#settings();
  }

  /** Bytes counted in total. */
  get bytes(): number {
    return this.#bytes;
  }

  bytesOf(keyId: string): number {
    return this.#byKey.get(keyId)?.bytes ?? 0;
  }

  /**
   * Takes a slot for a session that a key is about to open.
   * @throws {GatewayError} `rate_limit_exceeded` when the key is at its bound of sessions or bytes; `overloaded` when the
   * worker is
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

  /** Bars a key from opening sockets for a while, after some were cut for their memory. */
  bar(keyId: string): void {
    const key = this.#of(keyId);
    const isBarred = key.barredUntil > 0;
    key.barredUntil = performance.now() + barredMs;
    if (!isBarred) this.#unbarIn(barredMs, keyId, key);
  }

  /** Lifts the bar after a delay. Further cuts meanwhile extend it. */
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

  /** Marks a new turn of the event loop. Called by a timer, often. */
  turned(now: number): void {
    this.#turn++;
    this.#turnAt = now;
  }

  /**
   * Called when a message of a key has arrived, or a waiting one is next. uWS reads all sockets in one turn of the event
   * loop, and each again while it is full. Only this check acts within the turn; a timer would be too late.
   * @returns false if the turn is long, and the key has sent more in it than it may hold or is the cause of its length
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

  /** @returns whether a key may hold this many more bytes */
  hasRoom(keyId: string, bytes: number): boolean {
    return !this.isFullBy(bytes) && this.bytesOf(keyId) + bytes <= this.#settings().heldBytesPerKey;
  }

  /** Whether this many more bytes would exceed the bound of all keys together. */
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
   * Called when a session of the key has ended.
   * @param lingering bytes that stay with its connection for a while; null if the connection is gone
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

  /** The share of the measured bytes attributed to sockets of the key that were closed within a message. */
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

/** A slot for one session of a key, with the memory that the session holds. */
export class SessionSlot implements SocketRooms {
  readonly #memory: SessionMemory;
  readonly #keyId: string;
  readonly #key: KeyHold;
  #parts: Part[] = [];
  /** Bytes that the connection may keep because the client has not read them. */
  readonly unread: Part;
  readonly received: HeldPart;
  /** Whether the connection was cut, so that it holds nothing any longer. */
  isCut = false;
  /** Bytes that the upstream's connection keeps until it ends. */
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
    this.#key.turnMs += Math.min(ms, maxMessageMs);
  }

  /** @returns a counter of bytes that counts until the slot is released */
  part(): Part {
    const part = new Part(this.#memory, this.#keyId);
    this.#parts.push(part);
    return part;
  }

  /** Releases the slot and all its bytes; calling it again is a no-op. */
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

// Created once, so that a flood of refusals costs no stack traces.
const tooMuch = new GatewayError(
  'rate_limit_exceeded',
  'The WebSockets of this key use all the memory allowed: close some, or read waiting messages.',
  { retryAfter: 10, limit: 'sockets' },
);
export const full = new GatewayError(
  'overloaded',
  'The WebSockets of this gateway use all the memory allowed: try again shortly.',
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
