import type { Bench, Work, WorkReport } from '../bench.js';
import { callerAt } from '../callers.js';
import type { Running } from '../contenders/contender.js';
import { count, duration, median, percent } from '../figures.js';
import { type RealtimeResult, startRealtime } from '../load/realtime.js';
import { runTurns, type TurnSample, type TurnSeries } from '../turns.js';
import { medianShares, verdict } from '../verdict.js';

const sessions = 32;
/** Messages under way on each session: one, as in a dialogue, and enough to share reads and writes. */
const windows = [1, 8];

type Series = TurnSeries<number, RealtimeResult>;

/** Returns the path of a session at a contender. */
export function realtimePath({ prefix }: Running): string {
  return `${prefix}/v1/realtime?model=${callerAt(0).model}`;
}

/** Messages of 1 KB on WebSockets, echoed. */
export const realtimeWork: Work = {
  name: 'realtime',
  byDefault: false,
  async run(bench) {
    const all = await runTurns<number, RealtimeResult>(bench, {
      answer: 'realtime',
      contenders: bench.contenders,
      loads: windows,
      prepare: async (running) => {
        const target = { port: running.port, path: realtimePath(running), key: callerAt(0).key };
        const timing = { warmUpSeconds: 1, seconds: bench.options.seconds };
        return (window) => startRealtime({ ...target, sessions, window, ...timing }, bench.cores.load);
      },
    });
    return report(bench, all);
  },
};

const medianOf = ({ samples }: Series, read: (sample: TurnSample<RealtimeResult>) => number): number =>
  median(samples.map(read));

const rateOf = (series: Series): number => medianOf(series, (sample) => sample.messagesPerSecond);

/** Returns the contender's CPU time for a message and its echo, in microseconds; 0 if there is none. */
const costOf = (series: Series): number =>
  medianOf(series, ({ shares, messagesPerSecond }) =>
    messagesPerSecond > 0 ? (shares.contender * 1e6) / messagesPerSecond : 0,
  );

const nameOf = ({ name, load }: Series): string => `${name}, ${load}`;

function report(bench: Bench, all: readonly Series[]): WorkReport {
  const rows = all.map((series) => {
    if (series.samples.length === 0) return [nameOf(series), 'failed', ...Array<string>(8).fill('-')];
    const rates = series.samples.map((sample) => sample.messagesPerSecond);
    const reference = (name: string): Series | undefined =>
      all.find((other) => other.name === name && other.load === series.load && other.samples.length > 0);
    const ratioTo = (name: string): string => {
      const base = reference(name);
      return base ? `${(rateOf(series) / rateOf(base)).toFixed(2)}x` : '-';
    };
    const base = reference('haproxy');
    const cost = costOf(series);
    const used = medianShares(series);
    return [
      nameOf(series),
      count(median(rates)),
      `${count(Math.min(...rates))}-${count(Math.max(...rates))}`,
      duration(medianOf(series, (sample) => sample.p50Us)),
      duration(medianOf(series, (sample) => sample.p99Us)),
      ratioTo('haproxy'),
      ratioTo('nginx'),
      series.name === 'direct' ? '-' : percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
      cost > 0 ? `${cost.toFixed(2)} µs${base ? ` (${(cost / costOf(base)).toFixed(2)}x)` : ''}` : '-',
    ];
  });
  return {
    work: 'realtime',
    title: `messages of 1 KB there and back on ${sessions} WebSockets, so many under way on each`,
    columns: [
      'contender, under way',
      'messages/s',
      'min-max',
      'p50',
      'p99',
      'of haproxy',
      'of nginx',
      'CPU',
      'load + upstream',
      'CPU per message',
    ],
    rows,
    notes: [
      'The proxies pass bytes on and know nothing of messages; the CPU time is compared with that of haproxy.',
      ...all.flatMap((series) => said(bench, series)),
    ],
    figures: all,
  };
}

function said(bench: Bench, series: Series): string[] {
  const name = nameOf(series);
  return [
    ...series.samples.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${name}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(series.failure === null ? [] : [`${name}: FAILED: ${series.failure}`]),
    // Direct has its own kind of verdict, which is recognised by its name.
    ...verdict({ name: series.name === 'direct' ? 'direct' : name, samples: series.samples }, bench.cores),
  ];
}
