import type { Key } from '../../config/types.js';
import { GatewayError, type Guarded, handFault } from '../../errors.js';
import type { ClientSocket } from '../../http/socket.js';
import type { Running } from '../running.js';
import type { SessionMemory, SessionSlot } from './session-memory.js';

/** An open WebSocket session. */
export interface OpenSession extends Guarded {
  /** The key as it was when the session was opened. */
  readonly key: Key;
  /** The model of the session; null if each of its calls names its own. */
  readonly modelName: string | null;
  /** Called when the gateway is about to end: the session should end soon, on its own. */
  drain(): void;
  /** Ends the session because the gateway ends. */
  shutDown(): void;
  /** Ends the session and its call in flight, because its key may no longer use it. */
  expel(error: GatewayError): void;
  /** The client's side, as long as it is open. */
  readonly client: ClientSocket | null;
}

/** Most refusals that wait concurrently, since their connections and requests stay in memory. */
const maxLate = 1024;

/** The open sessions of a worker. */
export class SessionList {
  readonly memory: SessionMemory;
  readonly #open = new Set<OpenSession>();
  /** Unix milliseconds of the earliest expiry among the keys with sessions. */
  #expiresAt = Number.POSITIVE_INFINITY;
  #draining = false;
  #late = 0;

  constructor(memory: SessionMemory) {
    this.memory = memory;
  }

  /** The number of open sessions. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Takes a slot for a session that a key is about to open.
   * @throws {GatewayError} as `SessionMemory.takeSlot` does; `overloaded` while the gateway drains
   */
  takeSlot(keyId: string): SessionSlot {
    if (this.#draining) throw leaving;
    return this.memory.takeSlot(keyId);
  }

  /** @returns whether a refusal may be delayed; the caller then calls `endLate` when it was sent */
  beginLate(): boolean {
    if (this.#draining || this.#late >= maxLate) return false;
    this.#late++;
    return true;
  }

  endLate(): void {
    this.#late--;
  }

  all(): Iterable<OpenSession> {
    return this.#open;
  }

  /** Adds a session that was just opened. Ends it immediately if its key may no longer use it. */
  add(session: OpenSession, running: Running): void {
    this.#open.add(session);
    this.#check(session, running, Date.now());
    if (this.#draining && this.#open.has(session)) session.shutDown();
  }

  remove(session: OpenSession): void {
    this.#open.delete(session);
  }

  /** Drains the open sessions. A session opened afterwards is shut down immediately. */
  drain(): void {
    this.#draining = true;
    this.each((session) => session.drain());
  }

  shutDown(): void {
    this.each((session) => session.shutDown());
  }

  /** Ends sessions whose keys no longer exist in the running config, or may no longer use their models. */
  review(running: Running): void {
    this.#expiresAt = Number.POSITIVE_INFINITY;
    const now = Date.now();
    this.each((session) => this.#check(session, running, now));
  }

  /** Ends the sessions whose keys have expired. Called often. */
  tick(running: Running): void {
    if (Date.now() >= this.#expiresAt) this.review(running);
  }

  #check(session: OpenSession, running: Running, now: number): void {
    const key = running.keys.current(session.key);
    const fault = key === null ? revoked : faultOf(key, session.modelName, now);
    if (fault !== null) session.expel(fault);
    else if (key?.expiresAt != null) this.#expiresAt = Math.min(this.#expiresAt, key.expiresAt);
  }

  /** Calls `action` for each open session. A fault ends only the session concerned. */
  each(action: (session: OpenSession) => void): void {
    for (const session of [...this.#open]) {
      try {
        action(session);
      } catch (fault) {
        handFault(session, 'socket', fault);
      }
    }
  }
}

/** @returns why a key may no longer use a session, or null */
function faultOf(key: Key, modelName: string | null, now: number): GatewayError | null {
  if (key.expiresAt !== null && key.expiresAt <= now) return expired;
  if (modelName === null || key.models.get(modelName)?.protocols.has('realtime')) return null;
  return modelGone;
}

// Created once, since a reload may end very many sessions.
const revoked = new GatewayError('invalid_api_key', 'The API key of the session was revoked.');
const expired = new GatewayError('invalid_api_key', 'The API key of the session has expired.');
const modelGone = new GatewayError(
  'model_not_found',
  'The model of the session is no longer offered, or no longer available to its key.',
);
/** Of sessions that open, and messages that wait, while the gateway drains. */
export const leaving = new GatewayError('overloaded', 'The gateway is shutting down: reconnect.', {
  retryAfter: 1,
});
