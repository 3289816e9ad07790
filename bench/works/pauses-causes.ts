import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { gatewayConfig, startGateway, unreachedLimits } from '../contenders/gateway.js';
import { count } from '../figures.js';
import { startConstantRate } from '../load/constant-rate.js';
import { causeOf } from '../pauses/cause.js';
import type { NotedTurn } from '../pauses/watch.js';
import { freePort } from '../ports.js';
import { startUpstream } from '../upstream-process.js';

const watcher = fileURLToPath(new URL('../pauses/watch.js', import.meta.url));
const rate = 5_000;
const connections = 64;
/** Long enough for V8 to compile the path of the calls. */
const warmUpCalls = 30_000;
const leastMs = 1;

/**
 * Lists what caused each long turn of the event loop under calls at a constant rate. One run; `--seconds 60` for a
 * minute.
 */
export const pausesCausesWork: Work = {
  name: 'pauses-causes',
  byDefault: false,
  async run(bench) {
    const { turns, errors } = await watchLoad(bench);
    return report(bench, turns, errors);
  },
};

async function watchLoad(
  bench: Bench,
): Promise<{ readonly turns: readonly NotedTurn[]; readonly errors: readonly string[] }> {
  const { cores, directory, main, options } = bench;
  const notes = join(directory, 'pauses-causes.jsonl');
  writeFileSync(notes, '');
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream });
  const setup = { upstreamPort: upstream.port, answer: 'json', directory, core: cores.contender };
  const port = await freePort();
  const file = join(directory, `pauses-causes-${port}.json`);
  const metering = { limits: unreachedLimits, ledger: true, budget: true };
  writeFileSync(file, gatewayConfig(setup, join(directory, `store-${port}`), metering));
  const env = { BENCH_PAUSES: notes, NODE_OPTIONS: `--import ${watcher}` };
  const gateway = await startGateway(setup, file, port, { name: 'gateway', main, logs: true, env });
  try {
    const plan = { port, path: '/v1/chat/completions', callers: { keys: 1, models: 1 }, connections };
    const body = bodyFile(directory, 'pauses-causes', chatBody(1024, false));
    const timing = { rate, warmUpCalls, seconds: options.seconds };
    const client = await startConstantRate({ ...plan, ...timing, bodyFile: body }, cores.load);
    await client.warm;
    const from = Date.now();
    const { errors } = await client.result();
    const turns = readFileSync(notes, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as NotedTurn)
      .filter(({ at, cpuMs }) => at >= from && cpuMs >= leastMs);
    return { turns, errors };
  } finally {
    await gateway.stop();
    await upstream.process.stop();
  }
}

function report(bench: Bench, turns: readonly NotedTurn[], errors: readonly string[]): WorkReport {
  const byCause = new Map<string, number[]>();
  for (const turn of turns) {
    const cause = `${turn.role}: ${causeOf(turn)}`;
    byCause.set(cause, [...(byCause.get(cause) ?? []), turn.cpuMs]);
  }
  const sum = (all: readonly number[]): number => all.reduce((total, ms) => total + ms, 0);
  return {
    work: 'pauses-causes',
    title: `turns of the event loop above ${leastMs} ms of CPU time in ${bench.options.seconds} s of ${count(rate)} calls/s, logs, limits, ledger and budget on`,
    columns: ['process: cause', 'turns', 'longest', 'together'],
    rows: [...byCause]
      .sort(([, a], [, b]) => sum(b) - sum(a))
      .map(([cause, all]) => [
        cause,
        count(all.length),
        `${Math.max(...all).toFixed(1)} ms`,
        `${sum(all).toFixed(0)} ms`,
      ]),
    notes: [
      ...errors.map((error) => `THE RUN HAD ERRORS: ${error}.`),
      'A turn is put down to what took at least half of it: a collection, or what a function has asked to be called at intervals. The look at each turn takes time of its own.',
    ],
    figures: turns,
  };
}
