import { type Test, test } from 'tap';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../../support/postgres.js';
import { integersOf, seed } from '../../support/seed.js';
import { openClockedStore } from './clocked-store.js';
import { Fleet } from './fleet.js';
import { type Load, offer } from './load.js';

const workers = 2;
/** Before that no host has a term. */
const startMs = 1000;
const options = { skip: skipWithoutPostgres(), timeout: 300_000 };

/** Calls of one unit each of a key's requests. @param part of its limit that is offered */
function requests(id: string, limit: number, part: number, isMoving = false): Load {
  const pool = { name: `key:${id}:requests`, kind: 'requests', limit } as const;
  return { pool, perSecond: (limit / 60) * part, amounts: [1, 1], lastsMs: 0, isMoving };
}

/** What hosts are offered: limits that every one of them uses, and more of most than there is. */
const loads: readonly Load[] = [
  requests('wide', 3000, 1.4),
  requests('narrow', 300, 1.5),
  requests('below', 1500, 0.9, true),
  {
    pool: { name: 'key:wide:tokens', kind: 'tokens', limit: 300_000 },
    perSecond: 5,
    amounts: [100, 2500],
    lastsMs: 0,
    isMoving: true,
  },
  {
    pool: { name: 'group:team:concurrent', kind: 'concurrent', limit: 100 },
    perSecond: 25,
    amounts: [1, 1],
    lastsMs: 8000,
    isMoving: false,
  },
];

interface Run {
  readonly fleet: Fleet;
  readonly statementsPerSecond: number;
}

/** Has a fleet live with the loads. @returns what it said to the store */
async function run(t: Test, server: PostgresServer, hosts: number, seconds: number): Promise<Run> {
  const next = integersOf(seed);
  const store = await openClockedStore(t, server, hosts);
  const pools = loads.map(({ pool }) => pool);
  const fleet = new Fleet({ hosts, workers, pools, store, next });
  await fleet.advance(startMs);
  const before = fleet.statements;
  const cpuBefore = server.cpuSeconds();
  const results = await offer(fleet, loads, seconds * 1000, next);
  const statements = fleet.statements - before;
  const cpuMs = ((server.cpuSeconds() - cpuBefore) * 1000) / statements;
  for (const { load, granted, possible, worst } of results) {
    const { name, limit } = load.pool;
    const part = `${hosts} hosts, ${name}: ${((granted * 100) / possible).toFixed(1)} % of what could be granted`;
    t.ok(worst <= limit, `${hosts} hosts, ${name}: ${worst} of ${limit} at most`);
    t.ok(granted >= possible * 0.98, part);
  }
  const statementsPerSecond = statements / seconds;
  const rows = (fleet.rows / fleet.statements).toFixed(1);
  t.comment(
    `${hosts} hosts: ${statementsPerSecond.toFixed(0)} statements a second, ${rows} pools in each, ` +
      `${cpuMs.toFixed(2)} ms of the server's processor for one; a connection a host`,
  );
  return { fleet, statementsPerSecond };
}

test(
  '50 hosts on one PostgreSQL use a limit to the full and never more, and cost as much for each host as 10',
  options,
  async (t) => {
    const perSecond: number[] = [];
    for (const [hosts, seconds] of [
      [10, 66],
      [25, 66],
      [50, 66],
    ] as const) {
      const server = await postgresFor(t);
      perSecond.push((await run(t, server, hosts, seconds)).statementsPerSecond / hosts);
      await server.stop();
    }
    const [few = 0, , many = 0] = perSecond;
    t.ok(
      many <= few * 1.1,
      `${few.toFixed(1)} statements a second for each of 10 hosts, ${many.toFixed(1)} of 50`,
    );
  },
);
