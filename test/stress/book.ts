import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pricedConfig } from '../support/billing/calls.js';
import { type Charged, compare, type Difference } from '../support/billing/compare.js';
import { type LossyKill, takenBy } from '../support/billing/kills.js';
import { drawCall } from '../support/billing/plan.js';
import {
  type BilledGateway,
  makeCalls,
  operatorsToken,
  readLines,
  type TimedEnd,
} from '../support/billing/run.js';
import { type BillingUpstream, startBillingUpstream } from '../support/billing/upstream.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { killProcess } from '../support/gateway-processes.js';
import { type PostgresServer, postgresFor } from '../support/postgres.js';
import { startRestarted } from '../support/restarted-gateway.js';
import { integersOf } from '../support/seed.js';
import { storeFolder } from './store-folder.js';

/** What is killed with `kill -9`; `host` is the primary and all of its workers together. */
export type Victim = 'worker' | 'primary' | 'host' | 'database';

export interface BookPlan {
  readonly calls: number;
  readonly hosts: number;
  /** Seed of the plans. */
  readonly seed: number;
  /** The kills, in order, spread evenly over the calls. */
  readonly victims: readonly Victim[];
}

interface Kill extends LossyKill {
  readonly victim: Victim;
  /** Time at which the killed processes were back. */
  readonly until: number;
}

/** The result of comparing a bill with a ledger. */
export interface BookFigures {
  /** Calls that agree exactly, and calls whose lines are marked as inexact and are close enough. */
  readonly exact: number;
  readonly near: number;
  readonly interrupted: number;
  readonly kills: readonly Kill[];
  /** Requests that differ, by the kill that took their lines. */
  readonly ofKills: ReadonlyMap<string, number>;
  readonly unexplained: readonly Difference[];
  /** What clients should be charged, and what they are charged. */
  readonly billedNanoUsd: number;
  readonly chargedNanoUsd: number;
  /** Total of all differences that no kill explains: what is charged above the bill minus what is missing. */
  readonly offNanoUsd: number;
  /** Requests that the vendor has also billed for a failed attempt, in addition to the one that served. */
  readonly billedTwice: number;
  /** Calls that failed without a kill nearby. */
  readonly failed: readonly TimedEnd[];
  /** Requests with more than one line of a call. */
  readonly doubled: number;
}

const workers = 2;
/** A call that fails because of a kill may have ended up to this long before the kill was noted. */
const nearMs = 1500;
/** How long calls may fail once the processes are back, since these have to read their config and listen. */
const startMs = 15_000;
const databaseGoneMs = 3000;
/** A call without a line after this time will have none. */
const patienceMs = 60_000;
/** Time until a worker retries a store that has not answered. It then has much to write. */
const storeBackMs = 6000;
/**
 * Kills that may lose lines: a primary leaves its workers to the next one, and a database has what it has confirmed.
 */
const lossy: readonly Victim[] = ['worker', 'host'];

interface Host extends BilledGateway {
  pid(): number;
  listening(count: number): Promise<unknown>;
}

interface Stage {
  readonly teardown: (end: () => unknown) => void;
  readonly vendor: BillingUpstream;
  readonly hosts: readonly Host[];
  readonly database: PostgresServer | null;
}

/** Makes calls of every kind while processes are killed, and compares the vendor's bill with the ledger. */
export async function holdBook(plan: BookPlan): Promise<BookFigures> {
  const ends: (() => unknown)[] = [];
  try {
    return await hold(plan, (end) => void ends.push(end));
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

async function hold(plan: BookPlan, teardown: Stage['teardown']): Promise<BookFigures> {
  const below = integersOf(plan.seed);
  const plans = Array.from({ length: plan.calls }, (_, number) => drawCall(number, below));
  const vendor = await startBillingUpstream(
    { teardown },
    (number) => plans[number] ?? drawCall(number, below),
  );
  const stage = await setUp(plan, vendor, teardown);
  const kills: Kill[] = [];
  const gap = Math.floor(plan.calls / (plan.victims.length + 1));
  let killing = Promise.resolve();
  const onEnd = (ended: number): void => {
    const victim = ended % gap === 0 ? plan.victims[ended / gap - 1] : undefined;
    if (victim !== undefined) killing = killing.then(() => kill(stage, victim, kills));
  };
  const ended = await makeCalls(stage.hosts, plans, onEnd);
  await killing;
  await eventually(() => vendor.open === 0, {
    what: 'an end of every request upstream',
    withinMs: patienceMs,
  });
  return settle(stage, ended, kills, (number) => plans[number]?.failure != null);
}

async function setUp(
  { hosts, victims }: BookPlan,
  vendor: BillingUpstream,
  teardown: Stage['teardown'],
): Promise<Stage> {
  const isShared = hosts > 1 || victims.includes('database');
  const database = isShared ? await postgresFor({ teardown }) : null;
  const started = await Promise.all(
    Array.from({ length: hosts }, async (): Promise<Host> => {
      const folder = storeFolder();
      teardown(() => folder.remove());
      const [port, adminPort] = await Promise.all([freePort(), freePort()]);
      const store =
        database === null
          ? { kind: 'embedded', path: join(folder.path, 'store') }
          : { kind: 'postgres', url: database.url };
      const config = pricedConfig(vendor.origin, store, operatorsToken);
      const file = join(folder.path, 'config.json');
      const admin = { port: adminPort, token: operatorsToken };
      writeFileSync(file, JSON.stringify({ ...config, admin, secret: 'the same for all hosts of the book' }));
      const args = ['--config', file, '--host', '127.0.0.1', '--port', `${port}`, '--workers', `${workers}`];
      const gateway = startRestarted({ teardown }, args);
      await gateway.listening(1);
      return {
        baseUrl: `http://127.0.0.1:${port}`,
        adminUrl: async () => `http://127.0.0.1:${adminPort}`,
        pid: gateway.pid,
        listening: gateway.listening,
      };
    }),
  );
  return { teardown, vendor, hosts: started, database };
}

/** Kills with `kill -9`. Resolves when the killed processes are back. */
async function kill(stage: Stage, victim: Victim, kills: Kill[]): Promise<void> {
  const host = kills.length % stage.hosts.length;
  const at =
    victim === 'database'
      ? await killDatabase(stage)
      : await killProcesses(stage.hosts[host] as Host, victim);
  const gone = kills.findLast((other) => other.victim === 'database' && other.until > at - storeBackMs);
  kills.push({ victim, at, host, until: performance.now(), storeGoneAt: gone?.at });
}

/** @returns the time of the kill */
async function killDatabase({ database }: Stage): Promise<number> {
  const at = performance.now();
  await database?.crash();
  await pause(databaseGoneMs);
  await database?.restart();
  return at;
}

/** @returns the times of the kills */
async function killProcesses(host: Host, victim: Exclude<Victim, 'database'>): Promise<number> {
  const primary = host.pid();
  const children = childrenOf(primary);
  if (victim !== 'worker') killProcess(primary);
  if (victim === 'worker') killProcess(children[0] ?? 0);
  if (victim === 'host') for (const child of children) killProcess(child);
  const at = performance.now();
  const isThereAgain = (): boolean => {
    const now = childrenOf(host.pid());
    if (victim === 'worker') return now.length >= workers && !now.includes(children[0] ?? 0);
    return host.pid() !== primary && now.length >= workers;
  };
  await eventually(isThereAgain, { what: 'what was killed is there again', withinMs: patienceMs });
  return at;
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

async function settle(
  { hosts, vendor }: Stage,
  ends: readonly TimedEnd[],
  kills: readonly Kill[],
  mayFail: (number: number) => boolean,
): Promise<BookFigures> {
  const taking = kills.filter(({ victim }) => lossy.includes(victim));
  const causeOf = (difference: Difference): Kill | undefined => takenBy(difference, taking, ends);
  let lines: readonly Charged[] = [];
  let found = compare(vendor.bill, lines, ends);
  const patientUntil = performance.now() + patienceMs;
  while (performance.now() < patientUntil) {
    lines = await readLines(hosts[0] as Host);
    found = compare(vendor.bill, lines, ends);
    if (found.different.every((difference) => causeOf(difference) !== undefined)) break;
    await pause(1000);
  }
  const ofKills = new Map<string, number>();
  const unexplained: Difference[] = [];
  let offNanoUsd = found.chargedNanoUsd - found.billedNanoUsd;
  for (const difference of found.different) {
    const cause = causeOf(difference);
    if (cause === undefined) unexplained.push(difference);
    else {
      ofKills.set(cause.victim, (ofKills.get(cause.victim) ?? 0) + 1);
      offNanoUsd -= difference.offNanoUsd;
    }
  }
  const isNearKill = ({ from, until }: TimedEnd): boolean =>
    kills.some(({ at, until: again }) => until > at - nearMs && from < again + startMs);
  return {
    exact: found.exact,
    near: found.near,
    interrupted: lines.filter(({ outcome }) => outcome === 'interrupted').length,
    kills,
    ofKills,
    unexplained,
    billedNanoUsd: found.billedNanoUsd,
    chargedNanoUsd: found.chargedNanoUsd,
    offNanoUsd,
    billedTwice: vendor.bill.filter(({ end }) => end === 'failed').length,
    failed: ends.filter(
      (end) =>
        !end.hasLeft && !mayFail(end.number) && (end.status === 0 || end.status >= 400) && !isNearKill(end),
    ),
    doubled: found.doubled.length,
  };
}
