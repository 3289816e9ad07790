import type { Decision } from '../../../src/limits/admission.js';
import { type Pool, windowMsOf } from '../../../src/limits/pool.js';
import type { SimulatedWorker } from '../../limits/host.js';
import { type Use, worstMinute } from '../../limits/ledger.js';
import type { Integers } from '../../support/seed.js';
import type { Fleet } from './fleet.js';

/** Calls that a fleet is offered of one pool. */
export interface Load {
  readonly pool: Pool;
  /** Calls a second, on all hosts together. */
  readonly perSecond: number;
  /** The least and the most units of a call. */
  readonly amounts: readonly [least: number, most: number];
  /** Milliseconds for which a call has its slot, at most; half of it at least. */
  readonly lastsMs: number;
  /** A fifth of the hosts has four fifths of the calls, another one every 20 s. */
  readonly isMoving: boolean;
}

export interface LoadResult {
  readonly load: Load;
  readonly granted: number;
  /** Units that one limiter that knows all would have granted for the same calls. */
  readonly possible: number;
  /** The most that was in use at any moment, or in any minute. */
  readonly worst: number;
}

interface Offer {
  readonly at: number;
  readonly amount: number;
  readonly lastsMs: number;
}

const movesMs = 20_000;
const busyPart = 5;

/** Offers loads to a fleet for a time, and tells what came of each. */
export async function offer(
  fleet: Fleet,
  loads: readonly Load[],
  ms: number,
  next: Integers,
): Promise<LoadResult[]> {
  const begun = fleet.time.now;
  const running = loads.map((load) => new OfferedLoad(fleet, load, next, begun + ms));
  await fleet.advance(ms + 1500);
  return running.map((load) => load.result());
}

class OfferedLoad {
  readonly #fleet: Fleet;
  readonly #load: Load;
  readonly #next: Integers;
  readonly #offers: Offer[] = [];
  readonly #uses: Use[] = [];
  #inUse = 0;
  #most = 0;

  constructor(fleet: Fleet, load: Load, next: Integers, until: number) {
    this.#fleet = fleet;
    this.#load = load;
    this.#next = next;
    const { time } = fleet;
    const gapMs = 1000 / load.perSecond;
    const arrive = (): void => {
      this.#call();
      const at = time.now + gapMs * (0.5 + next(1000) / 1000);
      if (at < until) time.at(at, arrive);
    };
    time.at(time.now + gapMs, arrive);
  }

  result(): LoadResult {
    const { pool } = this.#load;
    const granted = this.#uses.reduce((sum, { amount }) => sum + amount, 0);
    const isWindow = windowMsOf[pool.kind] !== null;
    return {
      load: this.#load,
      granted,
      possible: isWindow
        ? possibleOfWindow(this.#offers, pool.limit)
        : possibleOfSlots(this.#offers, pool.limit),
      worst: isWindow ? worstMinute(this.#uses) : this.#most,
    };
  }

  #call(): void {
    const { pool, amounts, lastsMs } = this.#load;
    const { time } = this.#fleet;
    const [least, most] = amounts;
    const amount = least + this.#next(most - least + 1);
    const callMs = lastsMs / 2 + this.#next(1 + lastsMs / 2);
    this.#offers.push({ at: time.now, amount, lastsMs: callMs });
    const use = (decision: Decision): void => {
      if (decision.outcome !== 'admitted') return;
      this.#uses.push({ at: time.now, amount });
      this.#inUse += amount;
      this.#most = Math.max(this.#most, this.#inUse);
      time.at(time.now + callMs, () => {
        this.#inUse -= amount;
        decision.release();
      });
    };
    const result = this.#worker().holder.acquire([{ pool, amount }], use);
    if (result.outcome !== 'pending') use(result);
  }

  #worker(): SimulatedWorker {
    const { hosts, time } = this.#fleet;
    const { workers } = hosts[this.#host(hosts.length, time.now)] as { workers: SimulatedWorker[] };
    return workers[this.#next(workers.length)] as SimulatedWorker;
  }

  #host(hosts: number, now: number): number {
    if (!this.#load.isMoving || this.#next(busyPart) === 0) return this.#next(hosts);
    const busy = Math.max(1, Math.floor(hosts / busyPart));
    return (Math.floor(now / movesMs) * busy + this.#next(busy)) % hosts;
  }
}

function possibleOfWindow(offers: readonly Offer[], limit: number): number {
  const used: Offer[] = [];
  let [first, inWindow, granted] = [0, 0, 0];
  for (const offer of offers) {
    for (let old = used[first]; old !== undefined && old.at < offer.at - 60_000; old = used[++first])
      inWindow -= old.amount;
    if (inWindow + offer.amount > limit) continue;
    used.push(offer);
    inWindow += offer.amount;
    granted += offer.amount;
  }
  return granted;
}

function possibleOfSlots(offers: readonly Offer[], limit: number): number {
  let used: Offer[] = [];
  let granted = 0;
  for (const offer of offers) {
    used = used.filter(({ at, lastsMs }) => at + lastsMs > offer.at);
    const inUse = used.reduce((sum, { amount }) => sum + amount, 0);
    if (inUse + offer.amount > limit) continue;
    used.push(offer);
    granted += offer.amount;
  }
  return granted;
}
