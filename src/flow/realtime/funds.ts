import { GatewayError, guard } from '../../errors.js';
import type { Admission, Decision, Pending } from '../../limits/decision.js';
import type { Pool } from '../../limits/pool.js';
import type { RoutedCall } from '../call.js';
import { costSoFar } from '../consumption.js';
import type { Services } from '../services.js';

/**
 * What a session spends of its budgets as it goes. Each response is paid when its usage is known, and the next one is
 * reserved for as much: where that is not to be had, the session has to end.
 */
export class SessionFunds {
  /** A budget has too little left for another response like the last. */
  isSpent = false;
  readonly #services: Services;
  readonly #call: RoutedCall;
  readonly #pools: readonly Pool[];
  /** What pays for the next response: at first what the session was let in with. */
  #held: Admission | null;
  /** While more is asked for. */
  #pending: Pending | null = null;
  /** In nano-dollars. */
  #paid = 0;
  readonly #onSpent: () => void;

  /** @param onSpent called when `isSpent` becomes true later than in `pay` */
  constructor(
    services: Services,
    call: RoutedCall,
    pools: readonly Pool[],
    held: Admission,
    onSpent: () => void,
  ) {
    this.#services = services;
    this.#call = call;
    this.#pools = pools;
    this.#held = held;
    this.#onSpent = onSpent;
  }

  /** Pays for what the call has used since the last time, and reserves as much for what follows. */
  pay(): void {
    const cost = costSoFar(this.#call) - this.#paid;
    const held = this.#held;
    if (cost <= 0 || held === null) return;
    this.#settle(held, cost);
    const decide = guard('ipc', this.#call, (decision: Decision) => this.#decide(decision, true), undefined);
    const demands = this.#pools.map((pool) => ({ pool, amount: Math.min(cost, pool.limit) }));
    const decided = this.#services.limits.acquire(demands, decide);
    if (decided.outcome === 'pending') this.#pending = decided;
    else this.#decide(decided, false);
  }

  /** Pays for the rest, and gives back what was reserved; what the session was let in with is settled by its account. */
  end(): void {
    this.#pending?.cancel();
    const rest = costSoFar(this.#call) - this.#paid;
    const { limits, hostClock } = this.#services;
    const least = this.#pools.map((pool) => ({ pool, amount: 1 }));
    const held = this.#held ?? (rest > 0 ? limits.take(least, hostClock.now()) : null);
    if (this.#paid > 0 && held !== null) this.#settle(held, rest);
  }

  #settle(held: Admission, cost: number): void {
    for (const pool of this.#pools) held.settle(pool, cost);
    if (this.#paid > 0) held.release();
    this.#paid += cost;
    this.#held = null;
  }

  #decide(decision: Decision, isLater: boolean): void {
    this.#pending = null;
    if (decision.outcome === 'admitted') {
      this.#held = decision;
      // What was used while it was asked for.
      this.pay();
    }
    // Where nobody can tell, the session goes on.
    else if (decision.reason !== 'unknown') this.isSpent = true;
    if (this.isSpent && isLater) this.#onSpent();
  }
}

/** Made once: what a client is told before its session ends. */
export const budgetSpent = new GatewayError(
  'budget_exceeded',
  'The session ends, for the budget that pays for it has too little left for another response.',
  { unrepeatable: true },
);
