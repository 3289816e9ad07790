import { GatewayError, type Guarded, guard } from '../../errors.js';
import type { Admission, Decision } from '../../limits/admission.js';
import type { LeaseHolder } from '../../limits/lease-holder.js';
import type { Pool } from '../../limits/pool.js';
import type { WaitingCall } from '../../limits/waiting-line.js';
import { type Consumption, costSoFar } from '../record/consumption.js';

/** The part of `Services` used here. */
interface FundingServices {
  readonly limits: Pick<LeaseHolder, 'acquire'>;
}
type PaidCall = Consumption & Guarded;

/** Told what a budget pays for. */
export interface PaidSession {
  /** Called when `isSpent` becomes true later than in `pay`. */
  onSpent(): void;
  /** Called once for each `reserve` that returned null, unless the session ends before. */
  onReserved(isPaid: boolean): void;
}

/**
 * Charges a session to its budgets as it runs. Each response is charged when its usage is known, and as much is reserved
 * for the next one. If that cannot be reserved, the session has to end. Responses in flight at the same time have a
 * reservation each.
 */
export class SessionFunds {
  /** Whether a budget has too little left for another response like the last. */
  isSpent = false;
  readonly #services: FundingServices;
  readonly #call: PaidCall;
  readonly #pools: readonly Pool[];
  /** The reservation for the next response: at first that with which the session was admitted. */
  #admission: Admission | null;
  /** The reservation being acquired, if any. */
  #pending: WaitingCall | null = null;
  /** Whether a response that was asked for waits for it. */
  #isAwaited = false;
  /** The reservations for responses beside the first of those in flight. */
  readonly #others: Admission[] = [];
  #pendingOther: WaitingCall | null = null;
  /** The largest reservation or charge so far, which another response is expected to cost. */
  #most: number;
  /** Responses in flight, as last told. */
  #inFlight = 0;
  /** Nano-dollars charged so far. */
  #paid = 0;
  readonly #session: PaidSession;

  constructor(
    services: FundingServices,
    call: PaidCall,
    pools: readonly Pool[],
    held: Admission,
    session: PaidSession,
  ) {
    this.#services = services;
    this.#call = call;
    this.#pools = pools;
    this.#admission = held;
    this.#most = Math.max(
      0,
      ...held.demands.map(({ pool, amount }) => (pool.kind === 'budget' ? amount : 0)),
    );
    this.#session = session;
  }

  /**
   * Reserves for a response that is asked for.
   * @param inFlight responses that were asked for before and have not ended
   * @returns whether a budget pays for it; null if the session is told later
   */
  reserve(inFlight: number): boolean | null {
    this.#inFlight = inFlight + 1;
    if (this.#others.length >= inFlight) {
      this.#isAwaited = inFlight === 0 && this.#pending !== null;
      return this.#isAwaited ? null : true;
    }
    const decided = this.#acquire(this.#most, (decision) => {
      this.#pendingOther = null;
      this.#session.onReserved(this.#takeOther(decision));
    });
    if (decided.outcome !== 'pending') return this.#takeOther(decided);
    this.#pendingOther = decided;
    return null;
  }

  /** If the outcome is unknown, the session continues. */
  #takeOther(decision: Decision): boolean {
    if (decision.outcome === 'denied') return decision.reason === 'unknown';
    this.#others.push(decision);
    return true;
  }

  /**
   * Releases the reservations of responses that have ended or were refused.
   * @param inFlight responses that were asked for and have not ended
   */
  release(inFlight: number): void {
    this.#inFlight = inFlight;
    while (this.#others.length > Math.max(0, inFlight - 1)) this.#others.pop()?.undo();
  }

  /**
   * Charges the usage since the last charge, and reserves as much for the next response. A reservation that another
   * response in flight has becomes the next one: if it were released first, others could take it meanwhile.
   * @param inFlight responses that were asked for and have not ended
   */
  pay(inFlight: number): void {
    this.#inFlight = inFlight;
    const cost = costSoFar(this.#call) - this.#paid;
    if (cost <= 0 || this.#pending !== null || this.isSpent) return;
    this.#most = Math.max(this.#most, cost);
    // Without one, the last reservation's outcome was unknown, and the cost is charged to the one acquired now.
    if (this.#admission !== null) this.#settle(this.#admission, cost);
    const other = this.#others.length > Math.max(0, inFlight - 1) ? this.#others.pop() : undefined;
    if (other !== undefined) {
      this.#decide(other, false);
      return;
    }
    const decided = this.#acquire(cost, (decision) => this.#decide(decision, true));
    if (decided.outcome === 'pending') this.#pending = decided;
    else this.#decide(decided, false);
  }

  /** Charges the rest and releases the reservation; that of the admission is settled by `account`. */
  end(): void {
    this.#pending?.cancel();
    this.#pendingOther?.cancel();
    for (const other of this.#others) other.undo();
    const rest = costSoFar(this.#call) - this.#paid;
    const held = this.#admission;
    if (held !== null) {
      if (this.#paid > 0) this.#settle(held, rest);
      return;
    }
    if (rest <= 0) return;
    // Acquires zero, which is never denied: an empty budget then owes the rest.
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
      // Charges what was used while it was being acquired.
      this.pay(this.#inFlight);
    }
    // If the outcome is unknown, the session continues.
    else if (decision.reason !== 'unknown') this.isSpent = true;
    if (this.isSpent) {
      if (isLater) this.#session.onSpent();
    } else if (this.#isAwaited && this.#pending === null) {
      this.#isAwaited = false;
      this.#session.onReserved(true);
    }
  }
}

/** The error before a session ends; created once. */
export const budgetSpent = new GatewayError(
  'budget_exceeded',
  'The session ends because its budget has too little left for another response.',
  { limit: 'budget', unrepeatable: true },
);

/** The error for a response that is asked for beside others; created once. */
export const otherUnpaid = new GatewayError(
  'budget_exceeded',
  'The budget has too little left for another response beside those in progress: ask again when they have ended.',
  { limit: 'budget' },
);
