import { type AttackPlan, underAttack } from './hostile.js';
import { held, type Line, mb, ms, told } from './report.js';
import type { Scenario } from './scenario.js';

const mostRatio = 3;
type Crowd = Extract<AttackPlan, { readonly kind: 'sockets' }>;

const crowds: readonly Crowd[] = [
  { kind: 'sockets', sockets: 12, within: 'one frame' },
  { kind: 'sockets', sockets: 100, within: 'fragments' },
];

async function measure(attack: Crowd, seconds: number): Promise<readonly Line[]> {
  const figures = await underAttack({ attack, clients: 8, pauseMs: 20, undisturbedSeconds: 10, seconds });
  const { undisturbed, disturbed, ratio, beforeMb, highestMb, met } = figures;
  const failures = [...undisturbed.failures, ...disturbed.failures];
  const way = `${attack.sockets} sockets within messages in ${attack.within}`;
  return [
    told(way, met),
    held(
      'failed calls of the other key',
      failures.length === 0 ? 0 : `${failures.length}: ${[...new Set(failures)].join('; ')}`,
      '0',
      failures.length === 0,
    ),
    told('p99 undisturbed, and under attack', `${ms(undisturbed.p99Ms)}, ${ms(disturbed.p99Ms)}`),
    held('p99 under attack, of undisturbed', ratio.toFixed(2), `<= ${mostRatio}`, ratio <= mostRatio),
    told('resident before, and the most under attack', `${mb(beforeMb)}, ${mb(highestMb)}`),
  ];
}

/** What a key must not be able to do to another with messages that never end. */
export const hostileSocketScenarios: readonly Scenario[] = [
  {
    name: 'hostile-sockets',
    mostSeconds: 180,
    async run(seconds) {
      const lines: Line[] = [];
      for (const crowd of crowds) lines.push(...(await measure(crowd, seconds ?? 30)));
      return lines;
    },
  },
];
