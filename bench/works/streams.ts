import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import { certificateFiles } from '../certificate.js';
import type { Contender } from '../contenders/contender.js';
import { count, percent } from '../figures.js';
import { readJson, startScript } from '../load/script.js';
import type { StreamsOpen, StreamsResult } from '../load/streams-process.js';
import { type Shares, shares } from '../measure.js';
import { peakResidentMb, residentMb, workerOf } from '../proc.js';
import { startUpstream } from '../upstream-process.js';
import { disturbance } from '../verdict.js';

const wanted = 10_000;
/** Few enough for one core to carry all streams: at ten a second, a fifth of the streams did not open. */
const eventsPerSecond = 2;

interface Outcome {
  readonly name: string;
  readonly open: StreamsOpen;
  readonly result: StreamsResult;
  readonly shares: Shares;
  readonly idleMb: number;
  readonly openMb: number;
  readonly peakMb: number;
}

/**
 * Measures many open streams at a steady rate: whether every event arrives, and their memory. One run for each
 * contender.
 */
export const streamsWorks: readonly Work[] = [streamsWork(false), streamsWork(true)];

function streamsWork(upstreamTls: boolean): Work {
  const name = upstreamTls ? 'streams-tls' : 'streams';
  return { name, byDefault: false, run: (bench) => holdAll(bench, upstreamTls) };
}

async function holdAll(bench: Bench, upstreamTls: boolean) {
  // A proxy has two sockets for each stream, and a few other files.
  const possible = Math.floor((bench.machine.openFiles - 200) / 2);
  const streams = Math.min(wanted, possible);
  const file = bodyFile(bench.directory, 'streams', chatBody(1024, true));
  const notes: string[] = [];
  if (streams < wanted) {
    notes.push(
      `SCALED DOWN from ${count(wanted)} to ${count(streams)} streams: ulimit -n is ${bench.machine.openFiles}, ${count(wanted * 2 + 200)} are needed.`,
    );
  }
  const outcomes: Outcome[] = [];
  for (const contender of bench.contenders) {
    bench.progress(`streams: ${contender.name}`);
    try {
      outcomes.push(await hold(bench, contender, { streams, file, upstreamTls }));
    } catch (error) {
      notes.push(`${contender.name}: FAILED: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return report({ streams, upstreamTls }, outcomes, notes);
}

interface Streams {
  readonly streams: number;
  readonly upstreamTls: boolean;
}

async function hold(
  bench: Bench,
  contender: Contender,
  { streams, file, upstreamTls }: Streams & { readonly file: string },
): Promise<Outcome> {
  const { cores, directory, options } = bench;
  const certificate = upstreamTls ? certificateFiles(directory) : null;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream, certificate });
  const setup = {
    upstreamPort: upstream.port,
    answer: 'pace',
    directory,
    core: cores.contender,
    upstreamTls,
  };
  const running = await contender.start(setup);
  try {
    const worker = running.process ? workerOf(running.process.pid) : 0;
    const idleMb = residentMb(worker);
    const plan = {
      port: running.port,
      path: running.path,
      headers: running.headers,
      key: callerAt(0).key,
      bodyFile: file,
      streams,
    };
    const timing = { warmUpSeconds: 1, seconds: options.seconds };
    const client = await startScript('streams-process.js', { ...plan, ...timing }, cores.load);
    const open = await readJson<StreamsOpen>(client);
    await readJson<null>(client);
    const parts = { contender: running.process, load: client, upstream: upstream.process };
    const measured = await shares(options.seconds, parts, cores);
    const openMb = residentMb(worker);
    const result = await readJson<StreamsResult>(client);
    return {
      name: contender.name,
      open,
      result,
      shares: measured,
      idleMb,
      openMb,
      peakMb: peakResidentMb(worker),
    };
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}

/** Explains missing events by the core that was full. */
function shortfall(name: string, used: Shares): string[] {
  if (used.load + used.upstream > 0.94) {
    return [`${name}: the load side's core is full: the missing events say nothing about ${name}.`];
  }
  return used.contender > 0.94 ? [`${name}: its core is full: events are missing because of ${name}.`] : [];
}

function report(
  { streams, upstreamTls }: Streams,
  outcomes: readonly Outcome[],
  notes: readonly string[],
): WorkReport {
  const offered = streams * eventsPerSecond;
  const megabytes = (value: number): string => (value > 0 ? `${Math.round(value)} MB` : '-');
  const said = outcomes.flatMap(({ name, open, result, shares: used }) => [
    ...(open.refused > 0
      ? [
          `${name}: ${open.refused} STREAMS DID NOT OPEN (the client gives up after 200), the first: ${open.firstRefusal}`,
        ]
      : []),
    ...(result.ended > 0 ? [`${name}: ${result.ended} STREAMS ENDED BY THEMSELVES.`] : []),
    ...(result.eventsPerSecond < offered * 0.98 ? shortfall(name, used) : []),
    ...disturbance(name, used),
  ]);
  return {
    work: upstreamTls ? 'streams-tls' : 'streams',
    title: `${count(streams)} open SSE streams${upstreamTls ? ' over TLS to the upstream' : ''}, ${eventsPerSecond} events/s each`,
    columns: [
      'contender',
      'open',
      'events/s',
      'of offered',
      'RSS idle',
      'RSS open',
      'RSS peak',
      'CPU',
      'load + upstream',
    ],
    rows: outcomes.map(({ name, open, result, shares: used, idleMb, openMb, peakMb }) => [
      name,
      count(open.open),
      count(result.eventsPerSecond),
      percent(result.eventsPerSecond / offered),
      megabytes(idleMb),
      megabytes(openMb),
      megabytes(peakMb),
      percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
    ]),
    notes: [...notes, ...said],
    figures: outcomes,
  };
}
