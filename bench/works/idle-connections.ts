import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Contender } from '../contenders/contender.js';
import { count } from '../figures.js';
import type { IdleHeld, IdleOpen, IdlePlan } from '../load/idle-process.js';
import { readJson, startScript } from '../load/script.js';
import { residentMb, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';

const wanted = 15_000;
/** Open files of a contender in addition to its clients' connections. */
const otherFiles = 1_000;
const warmUpCalls = 30_000;
/** Pause after the warm-up, and after the last call. */
const settleMs = 500;

/** Resident memory in MB. */
interface Memory {
  readonly worker: number;
  /** 0 if one process does everything. */
  readonly primary: number;
}

interface Outcome {
  readonly name: string;
  readonly opened: IdleOpen;
  readonly held: IdleHeld;
  readonly before: Memory;
  readonly after: Memory;
}

/** Measures the memory of a client's idle connection after one call. One run for each contender. */
export const idleConnectionsWork: Work = {
  name: 'idle-connections',
  byDefault: false,
  async run(bench) {
    const connections = Math.min(wanted, bench.machine.openFiles - otherFiles);
    const notes: string[] = [];
    if (connections < wanted)
      notes.push(
        `SCALED DOWN from ${count(wanted)} to ${count(connections)} connections: ulimit -n is ${bench.machine.openFiles}.`,
      );
    const outcomes: Outcome[] = [];
    for (const contender of bench.contenders) {
      if (contender.name === 'direct') continue;
      bench.progress(`idle-connections: ${contender.name}`);
      try {
        outcomes.push(await hold(bench, contender, connections));
      } catch (error) {
        notes.push(`${contender.name}: FAILED: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return report(connections, outcomes, notes);
  },
};

function memoryOf(pid: number): Memory {
  const worker = workerOf(pid);
  return { worker: residentMb(worker), primary: worker === pid ? 0 : residentMb(pid) };
}

async function hold(bench: Bench, contender: Contender, connections: number): Promise<Outcome> {
  const { cores, directory } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream });
  const setup = { upstreamPort: upstream.port, answer: 'json', directory, core: cores.contender };
  const running = await contender.start(setup);
  try {
    const pid = running.process?.pid ?? 0;
    const plan: IdlePlan = {
      port: running.port,
      path: running.path,
      key: callerAt(0).key,
      headers: running.headers,
      bodyFile: bodyFile(directory, 'idle-connections', chatBody(1024, false)),
      connections,
      warmUpCalls,
    };
    const client = await startScript('idle-process.js', plan, cores.load);
    await readJson<null>(client);
    await wait(settleMs);
    const before = memoryOf(pid);
    const opened = await readJson<IdleOpen>(client);
    await wait(settleMs);
    const after = memoryOf(pid);
    const held = await readJson<IdleHeld>(client);
    await client.exited;
    return { name: contender.name, opened, held, before, after };
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}

function report(connections: number, outcomes: readonly Outcome[], notes: readonly string[]): WorkReport {
  const megabytes = (mb: number): string => (mb > 0 ? `${Math.round(mb)} MB` : '-');
  return {
    work: 'idle-connections',
    title: `${count(connections)} connections of clients on which nothing happens after a 1 KB call each`,
    columns: [
      'contender',
      'open',
      'took',
      'worker before',
      'with them',
      'bytes each',
      'primary before',
      'with them',
      'bytes each',
    ],
    rows: outcomes.map(({ name, opened, before, after }) => {
      const each = (part: keyof Memory): string =>
        before[part] > 0 && opened.open > 0
          ? count(((after[part] - before[part]) * 1024 * 1024) / opened.open)
          : '-';
      return [
        name,
        count(opened.open),
        `${opened.seconds.toFixed(1)} s`,
        megabytes(before.worker),
        megabytes(after.worker),
        each('worker'),
        megabytes(before.primary),
        megabytes(after.primary),
        each('primary'),
      ];
    }),
    notes: [
      ...notes,
      ...outcomes.flatMap(({ name, opened, held }) => [
        ...(opened.refused > 0
          ? [`${name}: ${count(opened.refused)} CONNECTIONS OR CALLS WERE REFUSED.`]
          : []),
        ...(held.open < opened.open
          ? [
              `${name}: ${count(opened.open - held.open)} CONNECTIONS WERE CLOSED before two seconds were over.`,
            ]
          : []),
      ]),
      'Resident memory after the same calls on other connections, and with these; the kernel has its buffers beside it.',
    ],
    figures: outcomes,
  };
}
