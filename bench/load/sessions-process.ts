import { setTimeout as wait } from 'node:timers/promises';
import { type EchoCounts, EchoSession } from './echo-session.js';
import { LatencyCounts } from './latency-counts.js';
import { describeErrors } from './load.js';
import type { SocketTarget } from './raw-socket.js';

export interface SessionsPlan extends SocketTarget {
  /** Sessions on which nothing is sent. */
  readonly idle: number;
  readonly busy: number;
  /** Time between two messages of a busy session. */
  readonly everyMs: number;
  /** Pause after the idle sessions are open. */
  readonly restSeconds: number;
  readonly seconds: number;
}

/** The last line. It follows a `null` for each of: warm, idle sessions open, busy sessions open. */
export interface SessionsResult {
  readonly messagesPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly errors: readonly string[];
}

/**
 * Runs as a separate process with a plan as JSON: opens idle sessions, then busy ones beside them, at a steady rate.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as SessionsPlan;
const warmUpSessions = 20;
const openingAtOnce = 50;
/** Most messages that a busy session waits for. */
const window = 8;
const counts: EchoCounts = { echoes: 0, broken: 0, wrong: 0, latencies: new LatencyCounts() };
let skipped = 0;

async function open(from: number, howMany: number): Promise<readonly EchoSession[]> {
  const sessions: EchoSession[] = [];
  let next = from;
  const opener = async (): Promise<void> => {
    while (next < from + howMany) {
      const number = next;
      next += 1;
      sessions.push(
        await EchoSession.open(plan, { number, window: number < plan.idle ? 1 : window }, counts),
      );
    }
  };
  await Promise.all(Array.from({ length: openingAtOnce }, opener));
  return sessions;
}

/** Loads and creates what is needed only once, so that it does not count for the sessions. */
async function warmUp(): Promise<void> {
  const sessions = await open(0, warmUpSessions);
  for (const session of sessions) session.send(1);
  await wait(500);
  for (const session of sessions) session.close();
  await wait(500);
  counts.broken -= warmUpSessions;
}

/** Spreads the sessions over the interval, as the sessions of independent users are. */
function keepBusy(sessions: readonly EchoSession[]): void {
  sessions.forEach((session, index) => {
    setTimeout(
      () => {
        setInterval(() => {
          if (session.underWay < window) session.send(1);
          else skipped += 1;
        }, plan.everyMs);
      },
      (index * plan.everyMs) / sessions.length,
    );
  });
}

await warmUp();
process.stdout.write('null\n');
await wait(1000);
await open(0, plan.idle);
process.stdout.write('null\n');
await wait(plan.restSeconds * 1000);
keepBusy(await open(plan.idle, plan.busy));
process.stdout.write('null\n');
await wait(1000);
counts.latencies.clear();
const before = { echoes: counts.echoes, at: performance.now() };
await wait(plan.seconds * 1000);
const result: SessionsResult = {
  messagesPerSecond: ((counts.echoes - before.echoes) * 1000) / (performance.now() - before.at),
  p50Us: counts.latencies.quantileUs(0.5),
  p99Us: counts.latencies.quantileUs(0.99),
  errors: describeErrors({
    'sessions that broke': counts.broken,
    'sessions with other bytes than were sent': counts.wrong,
    'messages not sent because too many were under way': skipped,
  }),
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
