import { setTimeout as wait } from 'node:timers/promises';
import { type EchoCounts, EchoSession } from './echo-session.js';
import { LatencyCounts } from './latency-counts.js';
import { describeErrors } from './load.js';
import type { RealtimePlan, RealtimeResult } from './realtime.js';

/**
 * Runs as a separate process with a plan as JSON: keeps as many messages under way on each session as its window
 * allows.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as RealtimePlan;
const counts: EchoCounts = { echoes: 0, broken: 0, wrong: 0, latencies: new LatencyCounts() };
const sessions: EchoSession[] = [];
for (let number = 0; number < plan.sessions; number += 1)
  sessions.push(await EchoSession.open(plan, { number, window: plan.window }, counts));
for (const session of sessions) {
  session.onEchoes = (count) => session.send(count);
  session.send(plan.window);
}

await wait(plan.warmUpSeconds * 1000);
process.stdout.write('null\n');
counts.latencies.clear();
const before = { echoes: counts.echoes, at: performance.now() };
const echoedBefore = sessions.map((session) => session.echoed);
await wait(plan.seconds * 1000);
const result: RealtimeResult = {
  messagesPerSecond: ((counts.echoes - before.echoes) * 1000) / (performance.now() - before.at),
  p50Us: counts.latencies.quantileUs(0.5),
  p99Us: counts.latencies.quantileUs(0.99),
  errors: describeErrors({
    'sessions that broke': counts.broken,
    'sessions with other bytes than were sent': counts.wrong,
    'sessions that stood still': sessions.filter(({ echoed }, at) => echoed === echoedBefore[at]).length,
  }),
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
