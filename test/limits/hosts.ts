import type { Pool } from '../../src/limits/pool.js';
import { ShareKeeper } from '../../src/limits/shares.js';
import type { HostAnswer } from '../../src/store/shares.js';
import { ownedUnits, SimulatedHost } from './host.js';
import { ShareModel } from './share-model.js';
import { SimulatedTime } from './time.js';

/** What the way between a host and the store is like. */
interface Way {
  /** Nothing comes through. */
  isCut: boolean;
  /** One statement of so many is lost, arrives after the host gave up on it, or loses its answer; 0 for none. */
  lossOf: number;
}

export interface SharedHost {
  readonly host: SimulatedHost;
  readonly keeper: ShareKeeper;
  readonly name: string;
  readonly way: Way;
  /** Every time the store went or came. */
  readonly news: boolean[];
  /** Statements so far. */
  statements: number;
}

interface HostsOptions {
  readonly pools: readonly Pool[];
  /** A number below the given one. */
  readonly next: (below: number) => number;
  readonly whenGone?: 'open' | 'closed';
  readonly workers?: number;
}

const giveUpMs = 1000;

/** Several hosts that share a store, in a time of their own. */
export class SimulatedHosts {
  readonly time = new SimulatedTime();
  /** By how much the clock of the store is ahead. */
  storeAheadMs = 0;
  readonly model = new ShareModel(() => this.time.now + this.storeAheadMs);
  readonly hosts: SharedHost[] = [];
  /** What their config says. */
  whenGone: 'open' | 'closed';
  readonly #options: HostsOptions;
  #count = 0;

  constructor(options: HostsOptions) {
    this.#options = options;
    this.whenGone = options.whenGone ?? 'open';
  }

  start(): SharedHost {
    const { pools, next, workers = 2 } = this.#options;
    const name = `host-${++this.#count}`;
    const way: Way = { isCut: false, lossOf: 0 };
    const news: boolean[] = [];
    const keeper = new ShareKeeper({
      now: () => this.time.now,
      host: name,
      whenGone: () => this.whenGone,
      onAvailable: (isAvailable) => news.push(isAvailable),
      exchange: (statement, onAnswer) => {
        shared.statements++;
        let isOver = false;
        const end = (answer: HostAnswer | null): void => {
          if (isOver || host.isStopped) return;
          isOver = true;
          onAnswer(answer);
        };
        const fate = way.isCut ? 'lost' : this.#fate(way);
        this.time.at(this.time.now + giveUpMs, () => end(null));
        if (fate === 'lost') return;
        const arrivesAt = this.time.now + (fate === 'late' ? giveUpMs + next(6000) : 0.1 + next(20) / 10);
        const copy = structuredClone(statement);
        this.time.at(arrivesAt, () => {
          const answer = this.model.exchange(copy);
          if (fate !== 'unanswered') this.time.at(this.time.now + 0.1 + next(20) / 10, () => end(answer));
        });
      },
    });
    const host = new SimulatedHost({
      pools,
      time: this.time,
      shares: keeper,
      delay: () => 0.1 + next(10) / 10,
    });
    const shared: SharedHost = { host, keeper, name, way, news, statements: 0 };
    this.hosts.push(shared);
    for (let i = 0; i < workers; i++) host.start();
    return shared;
  }

  /** Ends a host without a word. */
  crash(shared: SharedHost): void {
    shared.host.stop();
    this.hosts.splice(this.hosts.indexOf(shared), 1);
  }

  advance(ms: number): void {
    this.time.advance(ms);
  }

  /** Units of a pool that each host may use, together. */
  sum(pool: string): number {
    let sum = 0;
    for (const { host } of this.hosts) sum += unitsOf(host, pool);
    return sum;
  }

  #fate({ lossOf }: Way): 'fine' | 'lost' | 'late' | 'unanswered' {
    const { next } = this.#options;
    if (lossOf === 0 || next(lossOf) > 0) return 'fine';
    return (['lost', 'late', 'unanswered'] as const)[next(3)] as 'lost' | 'late' | 'unanswered';
  }
}

function unitsOf(host: SimulatedHost, name: string): number {
  return ownedUnits(host.owner).find((pool) => pool.name === name)?.share ?? 0;
}
