import { GatewayError } from '../../src/errors.js';
import type { BudgetAccounts, Reservation } from '../../src/store/accounts.js';
import type { SimulatedTime } from './time.js';

/** What becomes of a call: `lost` is done, and yet its caller hears of an error. */
export type Fate = 'good' | 'failed' | 'lost';

/** The accounts of a store in simulated time, which may be slow, gone, or lose its answers. */
export class SimulatedAccounts implements BudgetAccounts {
  /** What is reserved, by account. */
  readonly reserved = new Map<string, number>();
  /** Every reservation that was asked for. */
  readonly asked: Reservation[] = [];
  /** Milliseconds to the store, and the same back. */
  delayMs = 1;
  /** Decides each call when it arrives. */
  fate: () => Fate = () => 'good';
  /** Calls that have no answer yet, and how many there were at most. */
  underWay = 0;
  mostUnderWay = 0;
  readonly #debts = new Set<string>();
  readonly #time: SimulatedTime;

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  reserve(account: string, reservation: Reservation): Promise<number> {
    this.asked.push(reservation);
    const { limit, least, want, debt } = reservation;
    return this.#call(() => {
      const owed = debt !== null && this.#debts.has(debt) ? 0 : reservation.owed;
      if (debt !== null) this.#debts.add(debt);
      const reserved = this.reserved.get(account) ?? 0;
      const left = limit - reserved - owed;
      const granted = left < least ? 0 : Math.min(want, left);
      this.reserved.set(account, reserved + owed + granted);
      return granted;
    });
  }

  giveBack(account: string, amount: number): Promise<void> {
    return this.#call(() => void this.reserved.set(account, (this.reserved.get(account) ?? 0) - amount));
  }

  reservedOf(account: string): Promise<number> {
    return this.#call(() => this.reserved.get(account) ?? 0);
  }

  #call<T>(run: () => T): Promise<T> {
    const time = this.#time;
    this.underWay++;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    return new Promise((resolve, reject) => {
      time.at(time.now + this.delayMs, () => {
        const fate = this.fate();
        const done = fate === 'failed' ? null : { result: run() };
        time.at(time.now + this.delayMs, () => {
          this.underWay--;
          if (done !== null && fate === 'good') resolve(done.result);
          else reject(new GatewayError('store_unavailable', 'The store is gone.'));
        });
      });
    });
  }
}

/** Lets simulated time pass, and whoever waits for a promise go on in between. */
export async function pass(time: SimulatedTime, ms: number, stepMs = 1): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    time.advance(stepMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
