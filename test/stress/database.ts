import { setTimeout as pause } from 'node:timers/promises';
import { pricedConfig } from '../support/billing/calls.js';
import { type Charged, compare, type Difference } from '../support/billing/compare.js';
import { type CallPlan, drawCall } from '../support/billing/plan.js';
import { makeCalls, operatorsToken, readLines, type TimedEnd } from '../support/billing/run.js';
import { type BillingUpstream, startBillingUpstream } from '../support/billing/upstream.js';
import {
  type DatabaseFaultName,
  databaseFaults,
  type FaultyDatabase,
  faultySettings,
} from '../support/database-faults.js';
import { eventually, seenWithin } from '../support/eventually.js';
import { type GatewayProcesses, parseEntry, startProcesses } from '../support/gateway-processes.js';
import { postgresFor } from '../support/postgres.js';
import { startRelay } from '../support/relay.js';
import { integersOf } from '../support/seed.js';

interface DatabasePlan {
  /** Total number of calls: a fifth before the fault and at its beginning, a fifth after it. */
  readonly calls: number;
  readonly fault: DatabaseFaultName;
  /** Shortest duration of the fault. */
  readonly goneMs: number;
  /** Seed of the plans. */
  readonly seed: number;
}

export interface DatabaseFigures {
  readonly exact: number;
  readonly near: number;
  readonly different: readonly Difference[];
  /** Calls that need no store and failed although no upstream did. */
  readonly failed: readonly TimedEnd[];
  /** Calls that ended during the fault. */
  readonly during: number;
  /** Messages about the store, with how often the gateways have logged each. */
  readonly told: ReadonlyMap<string, number>;
  /** Those that a process has logged again before it logged the recovery. */
  readonly untimely: readonly string[];
  readonly budgets: readonly SpentBudget[];
}

/** A budget after its hosts have ended, in nano-dollars. */
interface SpentBudget {
  readonly account: string;
  /** What remains as spent. */
  readonly spent: number;
  /** Total of the lines of its calls. */
  readonly charged: number;
  /** What may remain as spent: some slices of each host that has lost answers of the store. */
  readonly most: number;
}

const hosts = 2;
const workers = 2;
/** More than calls cost, so that none is refused, and so little that every few calls need more of it. */
const usdOfCall = 2;
const warmCalls = 32;
/** Answers that a host loses in one fault: of the first call of the store, and of one more. */
const mostSlices = 2;
/** A call without a line after this time will have none. */
const patienceMs = 60_000;

interface Stage extends FaultyDatabase {
  readonly vendor: BillingUpstream;
  readonly gateways: readonly GatewayProcesses[];
}

/** Makes calls of every kind at two hosts while their database has a fault, and compares bill, ledger and budgets. */
export async function holdDatabase(plan: DatabasePlan): Promise<DatabaseFigures> {
  const ends: (() => unknown)[] = [];
  try {
    return await hold(plan, (end) => void ends.push(end));
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

async function hold(plan: DatabasePlan, teardown: (end: () => unknown) => void): Promise<DatabaseFigures> {
  const below = integersOf(plan.seed);
  const plans = Array.from({ length: plan.calls }, (_, number) => settledAtOnce(drawCall(number, below)));
  const vendor = await startBillingUpstream({ teardown }, (number) => plans[number] as CallPlan);
  const stage = await setUp(plan, vendor, teardown);
  const fault = databaseFaults[plan.fault](stage);
  const part = Math.ceil(plan.calls / 5);
  // The first calls meet processes that are still connecting.
  const warm = await makeCalls(stage.gateways, plans.slice(0, warmCalls));
  let begun: Promise<void> = Promise.resolve();
  const first = await makeCalls(stage.gateways, plans.slice(warmCalls, part), (ended) => {
    if (ended !== Math.ceil((part - warmCalls) / 2)) return;
    begun = fault.begin();
    // Awaited below.
    begun.catch(() => undefined);
  });
  await begun;
  let during = 0;
  let ended = 0;
  const end = async (): Promise<void> => {
    await pause(plan.goneMs);
    during = ended;
    await fault.end();
  };
  const [second] = await Promise.all([
    makeCalls(stage.gateways, plans.slice(part, -part), (count) => {
      ended = count;
    }),
    end(),
  ]);
  const third = await makeCalls(stage.gateways, plans.slice(-part));
  await eventually(() => vendor.open === 0, {
    what: 'an end of every request upstream',
    withinMs: patienceMs,
  });
  const counted = [...first, ...second, ...third];
  const ends = [...warm, ...counted];
  const lines = await settledLines(stage, ends);
  const { exact, near, different } = compare(vendor.bill, lines, ends);
  const [told, untimely] = [new Map<string, number>(), new Set<string>()];
  await eventually(() => stage.gateways.every(({ logs }) => openOf(logs).size === 0), {
    what: 'all that was gone is told to be back',
    everyMs: 100,
  });
  for (const { logs } of stage.gateways) noteTold(logs, told, untimely);
  await Promise.all(stage.gateways.map((gateway) => gateway.stop()));
  return {
    exact,
    near,
    different,
    failed: counted.filter((end) => isFailed(end, plans[end.number] as CallPlan)),
    during,
    told,
    untimely: [...untimely],
    budgets: budgetsOf(stage, plan.calls, lines),
  };
}

async function setUp(
  { calls }: DatabasePlan,
  vendor: BillingUpstream,
  teardown: (end: () => unknown) => void,
): Promise<Stage> {
  const server = await postgresFor({ teardown }, { settings: faultySettings });
  const relay = await startRelay({ teardown }, server.port);
  const url = server.url.replace(`:${server.port}`, `:${relay.port}`);
  const config = pricedConfig(vendor.origin, { kind: 'postgres', url }, operatorsToken);
  const limited = {
    limits: { requestsPerMinute: 1_000_000, concurrent: 1000 },
    budget: { usd: calls * usdOfCall, per: 'month' },
  };
  const file = {
    ...config,
    secret: 'the same for all hosts of the test',
    outage: { rates: 'open', budgets: 'open' },
    keys: (config.keys as object[]).map((key) => ({ ...key, ...limited })),
  };
  const gateways = await Promise.all(
    Array.from({ length: hosts }, () => startProcesses({ teardown }, { workers, file })),
  );
  return { server, relay, vendor, gateways };
}

/**
 * For a video whose client did not get its task, nobody could say which call a later correction belongs to. A client
 * that waits for a silent upstream makes no calls in the meantime.
 */
function settledAtOnce(plan: CallPlan): CallPlan {
  if (plan.kind === 'text') return plan.failure === 'silence' ? { ...plan, failure: 'hangs up' } : plan;
  return plan.kind === 'video' && plan.failure === 'fails later' ? { ...plan, failure: null } : plan;
}

/** Videos are kept in the store. No other call waits for it. */
function isFailed({ status, hasLeft }: TimedEnd, { kind, failure }: CallPlan): boolean {
  return !hasLeft && failure === null && kind !== 'video' && (status === 0 || status >= 400);
}

async function settledLines(
  { gateways, vendor }: Stage,
  ends: readonly TimedEnd[],
): Promise<readonly Charged[]> {
  return seenWithin(() => readLines(gateways[0] as GatewayProcesses), {
    fits: (lines) => compare(vendor.bill, lines, ends).different.length === 0,
    withinMs: patienceMs,
    everyMs: 500,
  });
}

/** How the log reports that something is impossible without the store, and that it works again. */
const messages: readonly (readonly [gone: string, back: string])[] = [
  [
    'the store of limits cannot be reached: this host counts alone, with the whole limits',
    'the store of limits is reachable again: limits apply across hosts',
  ],
  ['cannot reach the budget accounts', 'budget accounts are reachable again'],
  [
    'cannot read the keys in the store: the known keys stay in effect',
    'keys in the store are readable again',
  ],
  ['the store accepts no ledger entries: they wait in memory', 'the store accepts ledger entries again'],
];

/** Reads the log of each process. @returns what was reported as gone and not as back: process and message */
function openOf(
  logs: readonly string[],
  onGone: (message: string, isOpen: boolean) => void = () => {},
): ReadonlySet<string> {
  const open = new Set<string>();
  for (const line of logs) {
    const { pid, msg } = parseEntry(line) ?? {};
    for (const [gone, back] of messages) {
      const name = `${pid} ${gone}`;
      if (msg === back) open.delete(name);
      if (msg !== gone) continue;
      onGone(gone, open.has(name));
      open.add(name);
    }
  }
  return open;
}

function noteTold(logs: readonly string[], told: Map<string, number>, untimely: Set<string>): void {
  openOf(logs, (message, isOpen) => {
    told.set(message, (told.get(message) ?? 0) + 1);
    if (isOpen) untimely.add(message);
  });
}

function budgetsOf({ server }: Stage, calls: number, lines: readonly Charged[]): DatabaseFigures['budgets'] {
  const slice = (calls * usdOfCall * 1e9) / 100;
  const rows = server.query('SELECT budget, reserved_nano_usd FROM gateway.budgets ORDER BY budget');
  return rows.split('\n').map((row) => {
    const [account = '', spent] = row.split('|');
    const key = /^key:([^:]*)/.exec(account)?.[1];
    const charged = lines
      .filter(({ keyId }) => keyId === key)
      .reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0);
    return { account, spent: Number(spent), charged, most: charged + hosts * mostSlices * slice };
  });
}
