import type { HostAnswer, HostStatement, PoolStatement, ShareAnswer } from '../../src/store/shares.js';

const wishMs = 1000;

/** What a store of shares does, said once more and slowly: the function in PostgreSQL is held against it. */
export class ShareModel {
  readonly #now: () => number;
  readonly #hosts = new Map<string, { number: number; deadline: number }>();
  readonly #pools = new Map<string, Map<string, number>>();
  readonly #wishes = new Map<string, { host: string; pool: string; until: number }>();

  /** @param now milliseconds of the store's own clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @returns null where a later statement came first */
  exchange({ host, number, leaseMs, pools }: HostStatement): HostAnswer | null {
    const now = this.#now();
    const seen = this.#hosts.get(host)?.number ?? 0;
    if (seen >= number) return null;
    this.#hosts.set(host, { number, deadline: now + leaseMs });
    const answers = pools.map((statement) => this.#state(host, statement, now));
    for (const [key, { until }] of this.#wishes) if (until <= now) this.#wishes.delete(key);
    const wanted = [...this.#wishes.values()].filter((wish) => wish.host !== host).map(({ pool }) => pool);
    return { seen, pools: answers, wanted };
  }

  /** As a server does that is started again and has kept nothing. */
  loseAll(): void {
    this.#hosts.clear();
    this.#pools.clear();
    this.#wishes.clear();
  }

  /** Units of each host, as they are remembered. */
  sharesOf(pool: string): ReadonlyMap<string, number> {
    return this.#pools.get(pool) ?? new Map();
  }

  #state(host: string, statement: PoolStatement, now: number): ShareAnswer {
    const { pool, limit, held, need, least, want, blockMs } = statement;
    const shares = this.#pools.get(pool) ?? new Map<string, number>();
    this.#pools.set(pool, shares);
    let others = 0;
    for (const [name, units] of shares) {
      if (name === host) continue;
      const known = this.#hosts.get(name) ?? { number: 0, deadline: now };
      this.#hosts.set(name, known);
      if (known.deadline + blockMs <= now) shares.delete(name);
      else others += units;
    }
    const alive = [...this.#hosts.values()].filter(({ deadline }) => deadline > now).length;
    const free = limit - others - held;
    const spare = Math.min(want, Math.floor(free / (2 * alive)));
    const granted = need > 0 && free >= least ? Math.min(free, Math.max(need, spare)) : 0;
    if (held + granted > 0) shares.set(host, held + granted);
    else shares.delete(host);
    if ((granted < need || free < 0) && others > 0)
      this.#wishes.set(`${host} ${pool}`, { host, pool, until: now + wishMs });
    return { granted, left: free - granted };
  }
}
