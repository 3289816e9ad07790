import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Setup } from '../contenders/contender.js';
import { gatewayConfig, type Metering, startGateway, unreachedLimits } from '../contenders/gateway.js';
import { count, median } from '../figures.js';
import { freePort } from '../ports.js';
import { type Process, runningUs, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';

const none = 'none of them';

/** What is enabled in a part of a round. */
const parts: readonly (Metering & { readonly name: string })[] = [
  { name: none, ledger: false },
  { name: 'ledger', ledger: true },
  { name: 'ledger and limits', ledger: true, limits: unreachedLimits },
  { name: 'ledger, limits, price and budget', ledger: true, limits: unreachedLimits, budget: true },
];

/** Each part twice, in mirrored order, which cancels drift within a round. */
const order = [...parts, ...[...parts].reverse()];
/** Time until a reload is in force. Waiting ledger entries may be written during the next part. */
const settleMs = 100;
const warmUpMs = 4000;
/** Shortest measurement of a part. */
const leastMs = 100;

/** What a part of a round has used. */
interface Taken {
  cpuUs: number;
  requests: number;
  ms: number;
}

interface Reading {
  readonly cpuUs: number;
  readonly requests: number;
  readonly at: number;
}

/**
 * Measures what limits, the ledger, prices and budgets cost a 1 KB call. Gateways that are started separately differ
 * by more than that, so one process serves one load, and its config is reloaded several times a round.
 */
export const meteringWork: Work = {
  name: 'metering',
  byDefault: false,
  async run(bench) {
    const { against } = bench.options;
    const builds = [
      { name: 'gateway', main: bench.main },
      ...(against === null ? [] : [{ name: 'against', main: resolve(against) }]),
    ].filter(({ name }) => bench.options.contenders?.includes(name) ?? true);
    const all: Metered[] = [];
    for (const build of builds) all.push(await meter(bench, build));
    return {
      work: 'metering',
      title: `1 KB chat body, 1 KB answer, 32 connections; one gateway, reloaded ${order.length} times a round`,
      columns: ['what is on', 'CPU per request', `of ${none}`, 'req/s', `of ${none}`],
      rows: all.flatMap(({ build, rounds }) =>
        parts.map(({ name }) => rowOf(name, builds.length > 1 ? `${build}: ${name}` : name, rounds)),
      ),
      notes: [
        'CPU of the worker with all of its threads; medians over the rounds, with the standard errors of the ratios.',
        ...(builds.length > 1
          ? [
              'The builds ran one after the other: their ratios compare, and CPU times only as far as two processes do.',
            ]
          : []),
        ...all.flatMap(({ build, errors }) =>
          errors.map((error) => `${build}: THE RUN HAD ERRORS: ${error}.`),
        ),
      ],
      figures: all.map(({ build, rounds }) => ({
        build,
        rounds: rounds.map((round) => Object.fromEntries(round)),
      })),
    };
  },
};

/** What the parts of all rounds have used, for one build. */
interface Metered {
  readonly build: string;
  readonly rounds: readonly ReadonlyMap<string, Taken>[];
  readonly errors: readonly string[];
}

/** @param build a build with the path of its compiled main.js */
async function meter(
  bench: Bench,
  build: { readonly name: string; readonly main: string },
): Promise<Metered> {
  const { options, cores, directory } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream });
  const setup: Setup = { upstreamPort: upstream.port, answer: 'json', directory, core: cores.contender };
  const port = await freePort();
  const file = join(directory, `metering-${port}.json`);
  const put = (metering: Metering): void =>
    writeFileSync(file, gatewayConfig(setup, join(directory, `metering-store-${port}`), metering));
  put(parts[0] as Metering);
  const gateway = await startGateway(setup, file, port, { ...build, logs: false });
  const load = await bench.load.start({
    port,
    secure: false,
    path: '/v1/chat/completions',
    bodyFile: bodyFile(directory, 'metering', chatBody(1024, false)),
    connections: 32,
    seconds: Math.ceil((warmUpMs + options.rounds * roundMs(options.seconds)) / 1000),
    core: cores.load,
    directory,
    callers: [callerAt(0)],
    headers: {},
  });
  await wait(warmUpMs);
  const rounds: Map<string, Taken>[] = [];
  for (let round = 0; round < options.rounds; round++) {
    bench.progress(`metering, ${build.name}: round ${round + 1} of ${options.rounds}`);
    rounds.push(await oneRound(bench, { gateway, upstreamPort: upstream.port, put }));
  }
  const { errors } = await load.result;
  await gateway.stop();
  await upstream.process.stop();
  return { build: build.name, rounds, errors };
}

function measuredMs(roundSeconds: number): number {
  return Math.max(leastMs, (roundSeconds * 1000) / order.length - settleMs);
}

/** Includes time for reading the counters. */
function roundMs(roundSeconds: number): number {
  return order.length * (settleMs + measuredMs(roundSeconds) + 20);
}

async function oneRound(
  { options }: Bench,
  stage: {
    readonly gateway: Process;
    readonly upstreamPort: number;
    readonly put: (metering: Metering) => void;
  },
): Promise<Map<string, Taken>> {
  const { gateway, upstreamPort, put } = stage;
  const worker = workerOf(gateway.pid);
  const taken = new Map(parts.map(({ name }) => [name, { cpuUs: 0, requests: 0, ms: 0 }]));
  for (const part of order) {
    put(part);
    process.kill(gateway.pid, 'SIGHUP');
    await wait(settleMs);
    const before = await readingOf(worker, upstreamPort);
    await wait(measuredMs(options.seconds));
    const after = await readingOf(worker, upstreamPort);
    const own = taken.get(part.name) as Taken;
    own.cpuUs += after.cpuUs - before.cpuUs;
    own.requests += after.requests - before.requests;
    own.ms += after.at - before.at;
  }
  return taken;
}

async function readingOf(worker: number, upstreamPort: number): Promise<Reading> {
  const answered = await fetch(`http://127.0.0.1:${upstreamPort}/answered`);
  const requests = Number(await answered.text());
  return { cpuUs: runningUs(worker), requests, at: performance.now() };
}

function rowOf(name: string, label: string, rounds: readonly ReadonlyMap<string, Taken>[]): string[] {
  const costs = rounds.map((round) => costOf(round, name));
  const rates = rounds.map((round) => rateOf(round, name));
  const firstCosts = rounds.map((round) => costOf(round, none));
  const firstRates = rounds.map((round) => rateOf(round, none));
  return [
    label,
    `${median(costs).toFixed(2)} µs`,
    ratioText(costs, firstCosts),
    count(median(rates)),
    ratioText(rates, firstRates),
  ];
}

/** Compares the figures of a part with those of another one, round by round. */
function ratioText(values: readonly number[], others: readonly number[]): string {
  const ratios = values.map((value, round) => value / (others[round] as number));
  return `${median(ratios).toFixed(3)} ± ${standardError(ratios).toFixed(3)}`;
}

function costOf(round: ReadonlyMap<string, Taken>, name: string): number {
  const { cpuUs, requests } = round.get(name) as Taken;
  return cpuUs / requests;
}

function rateOf(round: ReadonlyMap<string, Taken>, name: string): number {
  const { requests, ms } = round.get(name) as Taken;
  return (requests / ms) * 1000;
}

/** Standard error of a median, from the median absolute deviation, for normally distributed values. */
function standardError(values: readonly number[]): number {
  const middle = median(values);
  const distance = median(values.map((value) => Math.abs(value - middle)));
  return (1.4826 * 1.2533 * distance) / Math.sqrt(values.length);
}
