import type { Key } from '../../config/types.js';
import { GatewayError, type Guarded, handFault } from '../../errors.js';
import type { ClientSocket } from '../../http/socket.js';
import type { Running } from '../running.js';
import type { SessionMemory, SessionSlot } from './session-memory.js';

/** A WebSocket session that is open. */
export interface OpenSession extends Guarded {
  /** As it was when the session was opened. */
  readonly key: Key;
  /** The model that the session is of; null where each of its calls names its own. */
  readonly modelName: string | null;
  /** The gateway is about to end: the session may come to its own end, and should soon. */
  drain(): void;
  /** Ends it because the gateway does. */
  shutDown(): void;
  /** Ends it, and what is under way on it, because its key may not go on with it. */
  expel(error: GatewayError): void;
  /** The client's side, as long as it is open. */
  readonly client: ClientSocket | null;
}

/** Refusals that wait at once, at most: their connections and requests are in memory as long. */
const mostLate = 1024;

/** The open sessions of a worker. */
export class SessionList {
  readonly memory: SessionMemory;
  readonly #open = new Set<OpenSession>();
  /** Unix milliseconds at which the first of the keys expires that have sessions. */
  #expiresAt = Number.POSITIVE_INFINITY;
  #draining = false;
  #late = 0;

  constructor(memory: SessionMemory) {
    this.memory = memory;
  }

  /** Sessions that are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Takes a slot for a session that a key is about to open.
   * @throws {GatewayError} as `SessionMemory.takeSlot` does; `overloaded` when the gateway is about to end
   */
  takeSlot(keyId: string): SessionSlot {
    if (this.#draining) throw leaving;
    return this.memory.takeSlot(keyId);
  }

  /** @returns whether a refusal may wait before it leaves; `endLate` follows it */
  beginLate(): boolean {
    if (this.#draining || this.#late >= mostLate) return false;
    this.#late++;
    return true;
  }

  endLate(): void {
    this.#late--;
  }

  all(): Iterable<OpenSession> {
    return this.#open;
  }

  /** Takes in a session that has just been opened: it ends at once where it may not go on. */
  add(session: OpenSession, running: Running): void {
    this.#open.add(session);
    this.#check(session, running, Date.now());
    if (this.#draining && this.#open.has(session)) session.shutDown();
  }

  remove(session: OpenSession): void {
    this.#open.delete(session);
  }

  /** Tells the sessions that are open; one that is opened after it ends at once. */
  drain(): void {
    this.#draining = true;
    this.each((session) => session.drain());
  }

  shutDown(): void {
    this.each((session) => session.shutDown());
  }

  /** Ends the sessions whose keys are none any more in what runs now, or may not use their models. */
  review(running: Running): void {
    this.#expiresAt = Number.POSITIVE_INFINITY;
    const now = Date.now();
    this.each((session) => this.#check(session, running, now));
  }

  /** To be called often: ends the sessions whose keys have expired. */
  tick(running: Running): void {
    if (Date.now() >= this.#expiresAt) this.review(running);
  }

  #check(session: OpenSession, running: Running, now: number): void {
    const key = running.keys.current(session.key);
    const fault = key === null ? revoked : faultOf(key, session.modelName, now);
    if (fault !== null) session.expel(fault);
    else if (key?.expiresAt != null) this.#expiresAt = Math.min(this.#expiresAt, key.expiresAt);
  }

  /** Tells each that is open now. A fault in that ends the session that it is about, and no other. */
  each(tell: (session: OpenSession) => void): void {
    for (const session of [...this.#open]) {
      try {
        tell(session);
      } catch (fault) {
        handFault(session, 'socket', fault);
      }
    }
  }
}

/** @returns why a key may not go on with a session, or null */
function faultOf(key: Key, modelName: string | null, now: number): GatewayError | null {
  if (key.expiresAt !== null && key.expiresAt <= now) return expired;
  if (modelName === null || key.models.get(modelName)?.protocols.has('realtime')) return null;
  return modelGone;
}

// Made once: a reload may end very many sessions.
const revoked = new GatewayError('invalid_api_key', 'The API key of the session was revoked.');
const expired = new GatewayError('invalid_api_key', 'The API key of the session has expired.');
const modelGone = new GatewayError(
  'model_not_found',
  'The model of the session is no longer offered, or no longer available to its key.',
);
const leaving = new GatewayError('overloaded', 'The gateway is shutting down: reconnect.', {
  retryAfter: 1,
});
