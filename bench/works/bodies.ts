import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Contender } from '../contenders/contender.js';
import { count } from '../figures.js';
import type { BodiesResult } from '../load/bodies-process.js';
import { readJson, startScript } from '../load/script.js';
import { peakResidentMb, residentMb, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';

const connections = 1_500;
const bodyBytes = 150_000;
const restMs = 10_000;

interface Outcome {
  readonly name: string;
  readonly result: BodiesResult;
  readonly idleMb: number;
  readonly peakMb: number;
  readonly afterMb: number;
}

/** Measures the memory of many bodies in flight to an upstream that answers only when it has received all of them. */
export const bodiesWork: Work = {
  name: 'bodies',
  byDefault: false,
  async run(bench) {
    const file = bodyFile(bench.directory, 'bodies', chatBody(bodyBytes, false));
    const notes: string[] = [];
    const outcomes: Outcome[] = [];
    for (const contender of bench.contenders) {
      if (contender.name === 'direct') continue;
      bench.progress(`bodies: ${contender.name}`);
      try {
        outcomes.push(await flood(bench, contender, file));
      } catch (error) {
        notes.push(`${contender.name}: FAILED: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const megabytes = (value: number): string => `${Math.round(value)} MB`;
    return {
      work: 'bodies',
      title: `${count(connections)} connections with a body of ${bodyBytes / 1000} KB each, answered when all have arrived`,
      columns: ['contender', 'answered', 'seconds', 'RSS idle', 'RSS peak', 'RSS 10 s after'],
      rows: outcomes.map(({ name, result, idleMb, peakMb, afterMb }) => [
        name,
        count(result.answered),
        result.seconds.toFixed(1),
        megabytes(idleMb),
        megabytes(peakMb),
        megabytes(afterMb),
      ]),
      notes: [
        ...notes,
        ...outcomes.flatMap(({ name, result }) =>
          result.errors.length > 0 ? [`${name}: THE RUN HAD ERRORS: ${result.errors.join(', ')}.`] : [],
        ),
      ],
      figures: outcomes,
    };
  },
};

async function flood(bench: Bench, contender: Contender, file: string): Promise<Outcome> {
  const { cores, directory } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream, gate: connections });
  const setup = { upstreamPort: upstream.port, answer: 'gate', directory, core: cores.contender };
  const running = await contender.start(setup);
  try {
    const worker = running.process ? workerOf(running.process.pid) : 0;
    const idleMb = residentMb(worker);
    const plan = {
      port: running.port,
      path: running.path,
      key: callerAt(0).key,
      bodyFile: file,
      connections,
    };
    const client = await startScript('bodies-process.js', plan, cores.load);
    const result = await readJson<BodiesResult>(client);
    const peakMb = peakResidentMb(worker);
    await wait(restMs);
    return { name: contender.name, result, idleMb, peakMb, afterMb: residentMb(worker) };
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}
