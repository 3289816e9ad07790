import type { Cores } from './bench.js';
import { median, percent } from './figures.js';
import type { Shares } from './measure.js';

/** A series with its shares of cores, from which its verdict is made. */
interface Shared {
  readonly name: string;
  readonly samples: readonly { readonly shares: Shares }[];
}

const full = 0.94;
const noticeable = 0.08;

/** Returns the median of each share over the samples of a series. */
export function medianShares(series: Shared): Shares {
  const of = (name: keyof Shares): number => median(series.samples.map((sample) => sample.shares[name]));
  return {
    contender: of('contender'),
    load: of('load'),
    upstream: of('upstream'),
    foreignContender: of('foreignContender'),
    foreignLoad: of('foreignLoad'),
  };
}

/**
 * Returns what limits a series, in sentences: whose core was full, what the figure then means, and whether other
 * processes ran on these cores.
 */
export function verdict(series: Shared, cores: Cores): string[] {
  const { name } = series;
  if (series.samples.length === 0) return [];
  const measured = medianShares(series);
  const shared = cores.load === cores.upstream && cores.load !== null;
  // On separate cores, the fuller one of the two limits.
  const load = shared ? measured.load + measured.upstream : Math.max(measured.load, measured.upstream);
  const loadFull = load >= full;
  const said =
    name === 'direct'
      ? [
          loadFull
            ? `direct: the load side takes ${percent(load)} of its core; nothing in front of it can be faster here.`
            : `direct: the load side takes only ${percent(load)} of its core; this is not yet what it can do.`,
        ]
      : [limit(name, measured, load, loadFull)];
  return [...said, ...disturbance(name, measured)];
}

/** Returns sentences about other processes that ran on the cores of a run; none on a quiet machine. */
export function disturbance(name: string, measured: Shares): string[] {
  const foreign: [string, number][] = [["the load side's core", measured.foreignLoad]];
  if (name !== 'direct') foreign.push([`${name}'s core`, measured.foreignContender]);
  return foreign
    .filter(([, share]) => share >= noticeable)
    .map(([where, share]) => `${name}: NOT A QUIET MACHINE: others took ${percent(share)} of ${where}.`);
}

function limit(name: string, measured: Shares, load: number, loadFull: boolean): string {
  const { contender, foreignContender, foreignLoad } = measured;
  const own = `(${percent(contender)})`;
  if (contender >= full && !loadFull) {
    return `${name}: its core is full ${own} and the load side's is not (${percent(load)}): this is ${name}'s own limit.`;
  }
  if (contender >= full) {
    return `${name}: both cores are full (${percent(contender)} and ${percent(load)}): this is close to ${name}'s limit, but the load side may hold it back.`;
  }
  if (loadFull) {
    return `${name}: the load side's core is full (${percent(load)}) and ${name}'s is not ${own}: this figure says nothing about ${name}; its CPU time does.`;
  }
  if (Math.max(contender + foreignContender, load + foreignLoad) >= full) {
    return `${name}: neither has its core to itself (${percent(contender)} and ${percent(load)}): others limit this run, and the figure is too low; its CPU time is nearer to the truth.`;
  }
  return `${name}: neither core is full (${percent(contender)} and ${percent(load)}): waiting limits this run, not work.`;
}
