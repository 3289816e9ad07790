import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { count, duration, median, percent, type Quantiles } from '../figures.js';
import type { StreamsResult } from '../load/streams-process.js';
import { runTurns, type TurnSample, type TurnSeries } from '../turns.js';
import { medianShares } from '../verdict.js';
import { startStreams, streamNotes } from './events.js';

const streams = 250;
const eventsPerSecond = 50;
/** V8's threads share the worker's core and compile for some seconds. They caused the longest delays. */
const warmUpSeconds = 10;

type Series = TurnSeries<number, StreamsResult>;
type Sample = TurnSample<StreamsResult>;

/**
 * Measures how long an event of a stream takes from the upstream to the client. The upstream writes the time into
 * each event, and the client on the same host compares it when it reads the event. With an access log, and limits in
 * the gateway.
 */
export const eventsDelayWork: Work = {
  name: 'events-delay',
  byDefault: true,
  async run(bench) {
    const body = bodyFile(bench.directory, 'events-delay', chatBody(1024, true));
    const all = await runTurns<number, StreamsResult>(bench, {
      answer: 'stamped',
      wiring: { accessLog: true, limits: true },
      contenders: bench.contenders,
      loads: [streams],
      prepare: async (running) => (wanted) => startStreams(bench, running, wanted, body, warmUpSeconds),
    });
    return report(bench, all);
  },
};

const delayOf = ({ samples }: { readonly samples: readonly Sample[] }, name: keyof Quantiles): number =>
  median(samples.map(({ delayUs }) => delayUs[name]));

function report({ cores }: Pick<Bench, 'cores'>, all: readonly Series[]): WorkReport {
  const nginx = all.find(({ name, samples }) => name === 'nginx' && samples.length > 0);
  const rows = all.map((series) => {
    const { name, samples } = series;
    if (samples.length === 0) return [name, 'failed', ...Array<string>(8).fill('-')];
    const used = medianShares(series);
    const ofNginx = (quantile: keyof Quantiles): string =>
      nginx ? `${(delayOf(series, quantile) / delayOf(nginx, quantile)).toFixed(2)}x` : '-';
    const rate = median(samples.map((sample) => sample.eventsPerSecond));
    return [
      name,
      ...(['p50', 'p90', 'p99', 'p999'] as const).map((quantile) => duration(delayOf(series, quantile))),
      ofNginx('p99'),
      ofNginx('p999'),
      `${count(rate)} (${percent(rate / (streams * eventsPerSecond))})`,
      name === 'direct' ? '-' : percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
    ];
  });
  return {
    work: 'events-delay',
    title: `delay of an event from the upstream to the client, ${streams} streams, ${eventsPerSecond} events/s each, one write each, logs and limits on`,
    columns: [
      'contender',
      'p50',
      'p90',
      'p99',
      'p99.9',
      'p99 of nginx',
      'p99.9 of nginx',
      'events/s (of offered)',
      'CPU',
      'load + upstream',
    ],
    rows,
    notes: all.flatMap((series) => streamNotes(series, cores)),
    figures: all,
  };
}
