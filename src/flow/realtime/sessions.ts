import { GatewayError } from '../../errors.js';

/** A WebSocket session that is open. */
export interface OpenSession {
  /** The gateway is about to end: the session may come to its own end, and should soon. */
  drain(): void;
  /** Ends it because the gateway does. */
  shutDown(): void;
  /** Ends it if its key is none any more. */
  onKeysChanged(): void;
}

/** The open sessions of a worker, and how many each key has. */
export class SessionList {
  readonly #open = new Set<OpenSession>();
  readonly #byKey = new Map<string, number>();

  /** Sessions that are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Takes a place for a session that a key is about to open.
   * @throws {GatewayError} `rate_limit_exceeded` when it has as many as it may
   */
  reserve(keyId: string, most: number): void {
    const held = this.#byKey.get(keyId) ?? 0;
    if (held >= most) throw tooMany(most);
    this.#byKey.set(keyId, held + 1);
  }

  /** Gives a place back. */
  release(keyId: string): void {
    const held = this.#byKey.get(keyId) ?? 0;
    if (held > 1) this.#byKey.set(keyId, held - 1);
    else this.#byKey.delete(keyId);
  }

  add(session: OpenSession): void {
    this.#open.add(session);
  }

  remove(session: OpenSession): void {
    this.#open.delete(session);
  }

  drain(): void {
    for (const session of [...this.#open]) session.drain();
  }

  shutDown(): void {
    for (const session of [...this.#open]) session.shutDown();
  }

  onKeysChanged(): void {
    for (const session of [...this.#open]) session.onKeysChanged();
  }
}

function tooMany(most: number): GatewayError {
  return new GatewayError(
    'rate_limit_exceeded',
    `This key has ${most} sessions open, as many as it may: close one first.`,
    { retryAfter: 10 },
  );
}
