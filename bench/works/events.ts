import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Running } from '../contenders/contender.js';
import { count, median, percent, spread } from '../figures.js';
import { readJson, startScript, type WarmingClient } from '../load/script.js';
import type { StreamsOpen, StreamsResult } from '../load/streams-process.js';
import { runTurns, type TurnSeries } from '../turns.js';
import { medianShares, verdict } from '../verdict.js';

const streams = 300;
const eventsPerSecond = 50;
/** Long enough for V8 to compile most of the code for events. */
const usualWarmUpSeconds = 2;

type Series = TurnSeries<number, StreamsResult>;

/** Measures streams as models send them: every event is sent separately, at a steady rate. */
export const eventsWorks: readonly Work[] = [
  eventsWork('events', 'events that come one by one', false),
  eventsWork('events-tls', 'events that come one by one over TLS', true),
];

function eventsWork(name: string, what: string, upstreamTls: boolean): Work {
  return {
    name,
    byDefault: true,
    async run(bench) {
      const body = bodyFile(bench.directory, 'events', chatBody(1024, true));
      const all = await runTurns<number, StreamsResult>(bench, {
        answer: 'events',
        wiring: { upstreamTls },
        // The client does not use TLS.
        contenders: bench.contenders.filter((contender) => !upstreamTls || contender.name !== 'direct'),
        loads: [streams],
        prepare: async (running) => (wanted) => startStreams(bench, running, wanted, body),
      });
      return report(
        bench,
        { work: name, title: `${streams} streams, ${eventsPerSecond} events/s each: ${what}` },
        all,
      );
    },
  };
}

/**
 * Opens streams of a running contender, and holds them.
 * @throws Error if any of them does not open
 */
export async function startStreams(
  { cores, options }: Bench,
  { port, path, headers }: Running,
  wanted: number,
  body: string,
  warmUpSeconds = usualWarmUpSeconds,
): Promise<WarmingClient<StreamsResult>> {
  const plan = { port, path, headers, key: callerAt(0).key, bodyFile: body, streams: wanted };
  const timing = { warmUpSeconds, seconds: options.seconds };
  const process = await startScript('streams-process.js', { ...plan, ...timing }, cores.load);
  const { open, firstRefusal } = await readJson<StreamsOpen>(process);
  if (open < wanted) throw new Error(`${wanted - open} streams did not open, the first: ${firstRefusal}`);
  return {
    process,
    warm: readJson<null>(process).then(() => {}),
    result: () => readJson<StreamsResult>(process),
  };
}

/** Returns the contender's CPU time for an event in each round, in microseconds. */
const costsOf = ({ samples }: Series): number[] =>
  samples.map(({ shares, eventsPerSecond: rate }) => (rate > 0 ? (shares.contender * 1e6) / rate : 0));

function report(
  { cores }: Pick<Bench, 'cores'>,
  head: { readonly work: string; readonly title: string },
  all: readonly Series[],
): WorkReport {
  const costOf = (name: string): number =>
    median(all.filter((series) => series.name === name).flatMap(costsOf));
  const offered = streams * eventsPerSecond;
  const rows = all.map((series) => {
    const { name, samples } = series;
    if (samples.length === 0) return [name, 'failed', ...Array<string>(6).fill('-')];
    const rates = samples.map((sample) => sample.eventsPerSecond);
    const costs = costsOf(series);
    const used = medianShares(series);
    const ratioTo = (other: string): string =>
      name === 'direct' || costOf(other) === 0 ? '-' : `${(costOf(other) / median(costs)).toFixed(2)}x`;
    return [
      name,
      ...(name === 'direct' ? ['-', '-'] : [`${median(costs).toFixed(2)} µs`, spread(costs)]),
      ratioTo('nginx'),
      ratioTo('haproxy'),
      count(median(rates)),
      percent(median(rates) / offered),
      `${percent(used.load)} + ${percent(used.upstream)}`,
    ];
  });
  return {
    ...head,
    columns: [
      'contender',
      'CPU per event',
      'min-max',
      'of nginx by CPU',
      'of haproxy by CPU',
      'events/s',
      'of offered',
      'load + upstream',
    ],
    rows,
    notes: all.flatMap((series) => streamNotes(series, cores)),
    figures: all,
  };
}

/** Returns notes about the runs of a contender whose streams were held open. */
export function streamNotes(series: Series, cores: Bench['cores']): string[] {
  return [
    ...series.samples.flatMap(({ ended }, index) =>
      ended > 0 ? [`${series.name}: RUN ${index + 1}: ${ended} STREAMS ENDED BY THEMSELVES.`] : [],
    ),
    ...(series.failure === null ? [] : [`${series.name}: FAILED: ${series.failure}`]),
    ...verdict(series, cores),
  ];
}
