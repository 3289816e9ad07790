import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import { gatewayConfig, startGateway } from '../contenders/gateway.js';
import type { NotedTurn } from '../pauses/watch.js';
import { freePort } from '../ports.js';
import { type Process, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';
import { large, ordinaryLimits } from './keys.js';

const token = 'a-token-of-operators';
const watcher = fileURLToPath(new URL('../pauses/watch.js', import.meta.url));

/** The gateway whose turns are recorded. */
interface Watched {
  readonly process: Process;
  readonly port: number;
  /** Sends a request to the operators' listener. @throws Error for anything but success */
  ask(method: string, path: string, body?: object): Promise<string>;
  /** Writes a config to the file that the gateway reads. */
  write(limitOf: (index: number) => number): void;
}

interface Step {
  readonly name: string;
  run(gateway: Watched, bench: Bench): Promise<unknown>;
}

const usual = ordinaryLimits.requestsPerMinute;
/** Waits for work that continues after an answer. */
const settleMs = 1500;

const reload = (limitOf: (index: number) => number) => (gateway: Watched) => {
  gateway.write(limitOf);
  return gateway.ask('POST', '/reload');
};

const steps: readonly Step[] = [
  { name: 'reload, nothing changed', run: reload(() => usual) },
  { name: 'reload, one key changed', run: reload((index) => usual + Number(index === 0)) },
  { name: 'reload, all keys changed', run: reload(() => usual + 1000) },
  {
    name: 'a key made and revoked',
    async run({ ask }) {
      const made = await ask('POST', '/keys', { groups: ['default'], limits: ordinaryLimits });
      const { id } = JSON.parse(made) as { id: string };
      await ask('DELETE', `/keys/${id}`);
    },
  },
  {
    name: 'first calls, 1,000 keys',
    run: (gateway, bench) => call(gateway, bench, { keys: 1000, models: 1000 }),
  },
  { name: 'calls of all keys', run: (gateway, bench) => call(gateway, bench, large) },
  { name: 'reload, all keys changed, in use', run: reload(() => usual + 2000) },
  { name: 'GET /metrics', run: ({ ask }) => ask('GET', '/metrics') },
  { name: 'GET /config', run: ({ ask }) => ask('GET', '/config') },
  { name: 'GET /limits', run: ({ ask }) => ask('GET', '/limits') },
  {
    name: 'a worker killed',
    async run({ process: { pid }, ask }) {
      const before = workerOf(pid);
      process.kill(before, 'SIGKILL');
      await until(async () => {
        const { workers } = JSON.parse(await ask('GET', '/status')) as { workers: { serving: number[] } };
        return workers.serving.length === 1 && workers.serving[0] !== before;
      });
    },
  },
];

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the gateway has no new worker after 30 s');
    await wait(50);
  }
}

/** All of these in turn. */
async function call({ port }: Watched, bench: Bench, { keys, models }: typeof large): Promise<void> {
  const callers = Array.from({ length: keys }, (_, index) => ({
    key: callerAt(index).key,
    model: callerAt(index % models).model,
  }));
  const load = await bench.load.start({
    port,
    secure: false,
    path: '/v1/chat/completions',
    bodyFile: bodyFile(bench.directory, 'pauses', chatBody(1024, false)),
    connections: 32,
    seconds: 8,
    core: null,
    directory: bench.directory,
    callers,
    headers: {},
  });
  const { errors } = await load.result;
  if (errors.length > 0) throw new Error(errors.join(', '));
}

/** The longest turns in the steps of one run, by their names, with those of the start. */
type Longest = ReadonlyMap<string, Readonly<Record<NotedTurn['role'], Pick<NotedTurn, 'cpuMs' | 'gcMs'>>>>;

async function runOnce(bench: Bench): Promise<Longest> {
  const notes = join(bench.directory, `pauses-${process.hrtime.bigint()}.jsonl`);
  writeFileSync(notes, '');
  const upstream = await startUpstream({ engine: 'uws', core: null });
  const longest = new Map<string, Readonly<Record<NotedTurn['role'], Pick<NotedTurn, 'cpuMs' | 'gcMs'>>>>();
  const measured = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
    bench.progress(name);
    const from = Date.now();
    const result = await work();
    await wait(settleMs);
    longest.set(name, longestOf(notes, from));
    return result;
  };
  try {
    const gateway = await measured('start', () => start(bench, upstream.port, notes));
    try {
      for (const { name, run } of steps) await measured(name, () => run(gateway, bench));
    } finally {
      await gateway.process.stop();
    }
  } finally {
    await upstream.process.stop();
  }
  return longest;
}

async function start(bench: Bench, upstreamPort: number, notes: string): Promise<Watched> {
  const { directory, main } = bench;
  const setup = { upstreamPort, answer: 'json', directory, core: null, catalogue: large };
  const [port, adminPort] = [await freePort(), await freePort()];
  const file = join(directory, `pauses-${port}.json`);
  const text = gatewayConfig(
    setup,
    join(directory, `store-${port}`),
    { limits: ordinaryLimits },
    { port: adminPort, token },
  );
  const config = {
    ...(JSON.parse(text) as { keys: object[] }),
    store: { kind: 'embedded', path: join(directory, `store-${port}`) },
  };
  const write: Watched['write'] = (limitOf) => {
    const keys = config.keys.map((key, index) => ({
      ...key,
      limits: { ...ordinaryLimits, requestsPerMinute: limitOf(index) },
    }));
    writeFileSync(file, JSON.stringify({ ...config, keys }));
  };
  write(() => usual);
  const env = { BENCH_PAUSES: notes, NODE_OPTIONS: `--import ${watcher}` };
  const plan = { name: 'gateway', main, logs: false, env };
  const server = await startGateway(setup, file, port, plan);
  return {
    process: server,
    port,
    write,
    async ask(method, path, body) {
      const answer = await fetch(`http://127.0.0.1:${adminPort}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const said = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said.slice(0, 200)}`);
      return said;
    },
  };
}

function longestOf(
  notes: string,
  from: number,
): Record<NotedTurn['role'], Pick<NotedTurn, 'cpuMs' | 'gcMs'>> {
  const longest = { primary: { cpuMs: 0, gcMs: 0 }, worker: { cpuMs: 0, gcMs: 0 } };
  for (const line of readFileSync(notes, 'utf8').split('\n').filter(Boolean)) {
    const { role, serves, at, cpuMs, gcMs } = JSON.parse(line) as NotedTurn;
    if (!serves || at < from || cpuMs - gcMs <= longest[role].cpuMs - longest[role].gcMs) continue;
    longest[role] = { cpuMs, gcMs };
  }
  return longest;
}

/**
 * Measures the pauses of a process with a large catalogue: the longest turn of the event loop of the primary and of a
 * worker, in CPU time of its thread, while something changes or somebody views it.
 */
export const pausesWork: Work = {
  name: 'pauses',
  byDefault: false,
  async run(bench): Promise<WorkReport> {
    const runs: Longest[] = [];
    for (let round = 0; round < bench.options.rounds; round += 1) runs.push(await runOnce(bench));
    const names = ['start', ...steps.map(({ name }) => name)];
    const figure = (
      name: string,
      role: NotedTurn['role'],
      of: (turn: { cpuMs: number; gcMs: number }) => number,
    ) => {
      const all = runs.map((run) => of(run.get(name)?.[role] ?? { cpuMs: 0, gcMs: 0 }));
      return Math.max(...all).toFixed(1);
    };
    const own = ({ cpuMs, gcMs }: { cpuMs: number; gcMs: number }) => Math.max(0, cpuMs - gcMs);
    return {
      work: 'pauses',
      title: `longest turn with ${large.keys} limited keys and ${large.models} models, CPU time of the thread`,
      columns: ['while', 'primary, ms', 'its GC', 'worker, ms', 'its GC'],
      rows: names.map((name) => [
        name,
        figure(name, 'primary', own),
        figure(name, 'primary', ({ gcMs }) => gcMs),
        figure(name, 'worker', own),
        figure(name, 'worker', ({ gcMs }) => gcMs),
      ]),
      notes: [
        `Of ${runs.length} runs the longest. A turn is all that runs between two waits for events; garbage collections in the turn are told apart. Those of a worker that does not serve yet are not among them.`,
      ],
      figures: runs.map((run) => Object.fromEntries(run)),
    };
  },
};
