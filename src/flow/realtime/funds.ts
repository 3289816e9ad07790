import { GatewayError, type Guarded, guard } from '../../errors.js';
import type { Admission, Decision } from '../../limits/admission.js';
import type { LeaseHolder } from '../../limits/lease-holder.js';
import type { Pool } from '../../limits/pool.js';
import type { WaitingCall } from '../../limits/waiting-line.js';
import { type Consumption, costSoFar } from '../record/consumption.js';

/** The part of `Services` that is needed here. */
interface FundingServices {
  readonly limits: Pick<LeaseHolder, 'acquire'>;
}
type PaidCall = Consumption & Guarded;

/**
 * What a session spends of its budgets as it goes. Each response is paid when its usage is known, and the next one is
 * reserved for as much: where that is not to be had, the session has to end.
 */
export class SessionFunds {
  /** A budget has too little left for another response like the last. */
  isSpent = false;
  readonly #services: FundingServices;
  readonly #call: PaidCall;
  readonly #pools: readonly Pool[];
  /** What pays for the next response: at first what the session was let in with. */
  #admission: Admission | null;
  /** While more is asked for. */
  #pending: WaitingCall | null = null;
  /** In nano-dollars. */
  #paid = 0;
  readonly #onSpent: () => void;

  /** @param onSpent called when `isSpent` becomes true later than in `pay` */
  constructor(
    services: FundingServices,
    call: PaidCall,
    pools: readonly Pool[],
    held: Admission,
    onSpent: () => void,
  ) {
    this.#services = services;
    this.#call = call;
    this.#pools = pools;
    this.#admission = held;
    this.#onSpent = onSpent;
  }

  /** Pays for what the call has used since the last time, and reserves as much for what follows. */
  pay(): void {
    const cost = costSoFar(this.#call) - this.#paid;
    if (cost <= 0 || this.#pending !== null || this.isSpent) return;
    // Else nobody could tell the last time, and it is paid from what is reserved now.
    if (this.#admission !== null) this.#settle(this.#admission, cost);
    const decided = this.#acquire(cost, (decision) => this.#decide(decision, true));
    if (decided.outcome === 'pending') this.#pending = decided;
    else this.#decide(decided, false);
  }

  /** Pays for the rest, and gives back what was reserved; what the session was let in with is settled by its account. */
  end(): void {
    this.#pending?.cancel();
    const rest = costSoFar(this.#call) - this.#paid;
    const held = this.#admission;
    if (held !== null) {
      if (this.#paid > 0) this.#settle(held, rest);
      return;
    }
    if (rest <= 0) return;
    // Of nothing, which is never denied: a budget that is empty owes the rest.
    const pay = (decision: Decision): void => {
      if (decision.outcome === 'admitted') this.#settle(decision, rest);
    };
    const decided = this.#acquire(0, pay);
    if (decided.outcome !== 'pending') pay(decided);
  }

  #acquire(amount: number, decide: (decision: Decision) => void): Decision | WaitingCall {
    const demands = this.#pools.map((pool) => ({ pool, amount: Math.min(amount, pool.limit) }));
    return this.#services.limits.acquire(demands, guard('ipc', this.#call, decide));
  }

  #settle(held: Admission, cost: number): void {
    held.settle('budget', cost);
    if (this.#paid > 0) held.release();
    this.#paid += cost;
    this.#admission = null;
  }

  #decide(decision: Decision, isLater: boolean): void {
    this.#pending = null;
    if (decision.outcome === 'admitted') {
      this.#admission = decision;
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
  'The session ends because its budget has too little left for another response.',
  { limit: 'budget', unrepeatable: true },
);
