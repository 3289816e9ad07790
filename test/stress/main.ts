import { parseArgs } from 'node:util';
import { launch } from '../../src/supervisor/launch.js';
import { endGateways } from '../support/gateway-processes.js';
import { strikeRealtime } from './realtime-stage.js';
import { held, type Line, table } from './report.js';
import type { Scenario } from './scenario.js';
import { scenarios } from './scenarios.js';
import { strikeAll } from './stage.js';

const usage = `Usage: npm run stress -- [--only NAME[,NAME]] [--seconds N]

  --only     ${scenarios.map(({ name }) => name).join(', ')}
  --seconds  how long slow-readers, video-readers, memory and realtime go on, and how long bodies rests; book makes
             fewer calls, for about that long
`;

/** Runs a scenario, and gives it up if it takes too long. */
async function play(scenario: Scenario, seconds: number | null): Promise<readonly Line[]> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    const most = scenario.mostSeconds + (seconds ?? 0);
    timer = setTimeout(() => reject(new Error(`not over after ${most} s`)), most * 1000);
  });
  try {
    return await Promise.race([scenario.run(seconds), tooLong]);
  } catch (error) {
    return [held('runs to its end', error instanceof Error ? error.message : String(error), '', false)];
  } finally {
    clearTimeout(timer);
    await Promise.all([strikeAll(), endGateways(), strikeRealtime()]);
  }
}

/** @returns the exit code */
async function run(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string' }, seconds: { type: 'string' } } });
  const seconds = values.seconds === undefined ? null : Number(values.seconds);
  const names = values.only?.split(',') ?? scenarios.map(({ name }) => name);
  const chosen = scenarios.filter(({ name }) => names.includes(name));
  if (chosen.length !== names.length || Number.isNaN(seconds)) {
    process.stderr.write(usage);
    return 2;
  }
  let failed = 0;
  for (const scenario of chosen) {
    const startedAt = performance.now();
    const lines = await play(scenario, seconds);
    process.stdout.write(table(scenario.name, (performance.now() - startedAt) / 1000, lines));
    failed += lines.filter(({ kept }) => kept === false).length;
  }
  process.stdout.write(failed === 0 ? 'Every bound was kept.\n' : `${failed} bounds were not kept.\n`);
  return failed === 0 ? 0 : 1;
}

// Child processes end with this process: the gateway is killed at exit, the upstream by its closed channel.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
const said = await launch();
if (said !== null) process.stderr.write(`${said}\n`);
process.exit(await run());
