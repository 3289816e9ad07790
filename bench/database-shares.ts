import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createPostgresShares } from '../src/store/postgres-shares.js';
import type { PoolStatement, ShareStore } from '../src/store/shares.js';
import { startPostgres } from '../test/support/postgres.js';

/*
 * Measures what the shares of many hosts cost one PostgreSQL: each host makes periodic exchanges over its own
 * connection, and each pool is in use on two hosts. A statement contains the pools whose share changes, as a
 * gateway's.
 */

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '32' },
    pools: { type: 'string', default: '10000' },
    /** Pools in each statement of a host: 40 if each of its 625 pools holds units for four seconds. */
    stated: { type: 'string', default: '40' },
    everyMs: { type: 'string', default: '250' },
    seconds: { type: 'string', default: '20' },
  },
});
const [hosts, pools, stated, everyMs, seconds] = [
  values.hosts,
  values.pools,
  values.stated,
  values.everyMs,
  values.seconds,
].map(Number) as [number, number, number, number, number];

const server = await startPostgres({ settings: ['shared_buffers=128MB'] });
if (server === null) throw new Error('there is no PostgreSQL');
const settings = {
  kind: 'postgres',
  host: '127.0.0.1',
  port: server.port,
  database: 'postgres',
  username: 'postgres',
  password: null,
  others: [],
  tls: 'off',
  schema: 'gateway',
  timeoutMs: 1000,
  taskDays: 1,
} as const;

/** Milliseconds of each answered exchange. */
const times: number[] = [];
let failures = 0;
let rows = 0;

/** Returns the pools of a host: each pool belongs to two neighbouring hosts. */
function poolsOf(host: number): string[] {
  const own: string[] = [];
  for (let pool = 0; pool < pools; pool++) {
    const first = pool % hosts;
    if (host === first || host === (first + 1 + (Math.floor(pool / hosts) % (hosts - 1))) % hosts)
      own.push(`key:k${pool}:requests`);
  }
  return own;
}

async function run(host: number, store: ShareStore, until: number): Promise<void> {
  const own = poolsOf(host);
  const held = new Map<string, number>();
  let number = 0;
  let next = 0;
  for (let at = performance.now() + Math.random() * everyMs; at < until; at += everyMs) {
    await wait(Math.max(0, at - performance.now()));
    number += 1;
    const statements: PoolStatement[] = [];
    for (let count = 0; count < Math.min(stated, own.length); count++) {
      const pool = own[next % own.length] ?? '';
      next += 1;
      // A part of what it held is used, but remains its own until the minute is over.
      const has = held.get(pool) ?? 0;
      const back = has > 200 ? has - 100 : has;
      held.set(pool, back);
      statements.push({ pool, limit: 1000, held: back, need: 5, least: 1, want: 25, blockMs: 60_000 });
    }
    const askedAt = performance.now();
    try {
      const answer = await store.exchange({ host: `host-${host}`, number, leaseMs: 5000, pools: statements });
      times.push(performance.now() - askedAt);
      rows += statements.length;
      for (const [index, { pool }] of statements.entries())
        held.set(pool, (held.get(pool) ?? 0) + (answer.pools[index]?.granted ?? 0));
    } catch {
      failures += 1;
    }
  }
}

const stores = Array.from({ length: hosts }, () => createPostgresShares(settings));
// The first call creates the tables.
await stores[0]?.exchange({ host: 'probe', number: 1, leaseMs: 1, pools: [] });
const start = performance.now();
const cpu = process.cpuUsage();
const before = server.cpuSeconds();
await Promise.all(stores.map((store, host) => run(host, store, start + seconds * 1000)));
const took = (performance.now() - start) / 1000;
const used = process.cpuUsage(cpu);
const serverCpu = server.cpuSeconds() - before;
await Promise.all(stores.map((store) => store.close()));
await server.stop();

times.sort((a, b) => a - b);
const quantile = (part: number): string => (times[Math.floor(times.length * part)] ?? Number.NaN).toFixed(1);
process.stdout.write(
  `${hosts} hosts, ${pools} pools, ${stated} stated every ${everyMs} ms: ` +
    `${(times.length / took).toFixed(0)} exchanges/s of ${((hosts * 1000) / everyMs).toFixed(0)}, ${(rows / took).toFixed(0)} rows/s, ` +
    `p50 ${quantile(0.5)} p99 ${quantile(0.99)} p99.9 ${quantile(0.999)} ms, ${failures} failed, ` +
    `CPU of the server ${(serverCpu / took).toFixed(2)} cores, of all hosts ${((used.user + used.system) / 1e6 / took).toFixed(2)}\n`,
);
