import type { Pool } from '../../../src/limits/pool.js';
import { ShareKeeper } from '../../../src/limits/shares.js';
import type { HostAnswer, HostStatement } from '../../../src/store/shares.js';
import { SimulatedHost } from '../../limits/host.js';
import { SimulatedTime } from '../../limits/time.js';
import type { Integers } from '../../support/seed.js';

/** The store of a fleet: each host speaks to it by its own number, and its clock is the fleet's. */
export interface FleetStore {
  /** Nothing is exchanged before it is done. @param now milliseconds of the fleet's clock */
  setClock(now: number): Promise<void>;
  /** @returns null where nobody knows what became of the statement */
  exchange(host: number, statement: HostStatement): Promise<HostAnswer | null>;
}

interface FleetOptions {
  readonly hosts: number;
  readonly workers: number;
  readonly pools: readonly Pool[];
  readonly store: FleetStore;
  readonly next: Integers;
}

/** How much time passes before the store is asked what hosts have to say: so late do its answers come at most. */
const stepMs = 2;

/** Many hosts with the limiter of a gateway each, in a time of their own, on one store that answers in its own time. */
export class Fleet {
  readonly time = new SimulatedTime();
  readonly hosts: SimulatedHost[] = [];
  /** Statements so far, and the pools in them. */
  statements = 0;
  rows = 0;
  /** Hosts of which nothing reaches the store. */
  readonly cut = new Set<number>();
  readonly #store: FleetStore;
  #waiting: (() => Promise<void>)[] = [];

  constructor({ hosts, workers, pools, store, next }: FleetOptions) {
    this.#store = store;
    for (let number = 0; number < hosts; number++) {
      const keeper = new ShareKeeper({
        now: () => this.time.now,
        host: `host-${number}`,
        whenGone: () => 'closed',
        onAvailable: () => {},
        exchange: (statement, onAnswer) => this.#note(number, statement, onAnswer),
      });
      const host = new SimulatedHost({
        pools,
        time: this.time,
        shares: keeper,
        delay: () => 0.1 + next(10) / 10,
        looks: false,
      });
      for (let worker = 0; worker < workers; worker++) host.start();
      this.hosts.push(host);
    }
  }

  async advance(ms: number): Promise<void> {
    for (const end = this.time.now + ms; this.time.now < end; ) {
      this.time.advance(Math.min(stepMs, end - this.time.now));
      if (this.#waiting.length === 0) continue;
      const waiting = this.#waiting;
      this.#waiting = [];
      await this.#store.setClock(this.time.now);
      await Promise.all(waiting.map((exchange) => exchange()));
    }
  }

  #note(host: number, statement: HostStatement, onAnswer: (answer: HostAnswer | null) => void): void {
    if (this.cut.has(host)) {
      this.time.at(this.time.now + 1000, () => onAnswer(null));
      return;
    }
    this.statements++;
    this.rows += statement.pools.length;
    const copy = structuredClone(statement);
    this.#waiting.push(async () => {
      const answer = await this.#store.exchange(host, copy);
      this.time.at(this.time.now, () => onAnswer(answer));
    });
  }
}
