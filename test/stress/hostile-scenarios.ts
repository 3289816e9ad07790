import { type HostileFigures, underAttack } from './hostile.js';
import { held, type Line, mb, ms, told } from './report.js';
import type { Scenario } from './scenario.js';

const mostRatio = 3;

/** The bounds for the calls of one key while another attacks. */
function hostileLines(figures: HostileFigures): readonly Line[] {
  const { undisturbed, disturbed, ratio, beforeMb, highestMb, met } = figures;
  const failures = [...undisturbed.failures, ...disturbed.failures];
  return [
    told('what the attack met', met),
    told('answers undisturbed, and under attack', `${undisturbed.answers}, ${disturbed.answers}`),
    held(
      'failed calls of the other key',
      failures.length === 0 ? 0 : `${failures.length}: ${[...new Set(failures)].join('; ')}`,
      '0',
      failures.length === 0,
    ),
    told('p50 undisturbed, and under attack', `${ms(undisturbed.p50Ms)}, ${ms(disturbed.p50Ms)}`),
    told('p99 undisturbed, and under attack', `${ms(undisturbed.p99Ms)}, ${ms(disturbed.p99Ms)}`),
    held('p99 under attack, of undisturbed', ratio.toFixed(2), `<= ${mostRatio}`, ratio <= mostRatio),
    told('resident before, and the most under attack', `${mb(beforeMb)}, ${mb(highestMb)}`),
  ];
}

export const hostileScenarios: readonly Scenario[] = [
  {
    name: 'hostile-bodies',
    mostSeconds: 180,
    async run(seconds) {
      const plan = { attack: { kind: 'bodies' }, clients: 8, pauseMs: 20, undisturbedSeconds: 10 } as const;
      return hostileLines(await underAttack({ ...plan, seconds: seconds ?? 30 }));
    },
  },
];
