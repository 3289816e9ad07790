import type { HeldPool } from './held-pool.js';
import type { HolderMessage, PoolAmount, PoolAsk, PoolRecalled } from './messages.js';

/** What a worker is about to tell the primary: one message of each type for everything that happens at once. */
export class HolderOutbox {
  recalled: PoolRecalled[] = [];
  overdrafts: PoolAmount[] = [];
  spent: PoolAmount[] = [];
  returns: PoolAmount[] = [];
  asks: PoolAsk[] = [];
  /** Pools of which units were spent since that was last told. */
  readonly spending = new Set<HeldPool>();
  #send: ((message: HolderMessage) => void) | null;
  readonly #defer: (run: () => void) => void;
  #isDeferred = false;

  /** @param defer runs something when all has happened that happens at once */
  constructor(send: (message: HolderMessage) => void, defer: (run: () => void) => void) {
    this.#send = send;
    this.#defer = defer;
  }

  /** Notes what was spent since this was last called. */
  tellSpent(): void {
    for (const held of this.spending) {
      const amount = held.tellSpent();
      if (amount > 0) this.spent.push({ pool: held.name, amount });
    }
    this.spending.clear();
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#send = null;
  }

  /** Has everything sent that was noted, once. */
  flush(): void {
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#defer(() => {
      this.#isDeferred = false;
      this.flushNow();
    });
  }

  flushNow(): void {
    const send = this.#send;
    // Asks last: units that come back with them may be what they lack.
    if (this.recalled.length > 0) {
      const { recalled } = this;
      this.recalled = [];
      send?.({ type: 'lease-recalled', recalled });
    }
    if (this.overdrafts.length > 0) {
      const { overdrafts } = this;
      this.overdrafts = [];
      send?.({ type: 'lease-overdraft', overdrafts });
    }
    if (this.spent.length > 0) {
      const { spent } = this;
      this.spent = [];
      send?.({ type: 'lease-spent', spent });
    }
    if (this.returns.length > 0) {
      const { returns } = this;
      this.returns = [];
      send?.({ type: 'lease-return', returns });
    }
    if (this.asks.length > 0) {
      const { asks } = this;
      this.asks = [];
      send?.({ type: 'lease-ask', asks });
    }
  }
}
