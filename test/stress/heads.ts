import type { Test } from 'tap';
import { fuzzHeads } from '../support/head-fuzz.js';
import { seed } from '../support/seed.js';
import { held, type Line, told } from './report.js';
import type { Scenario } from './scenario.js';

const attacksOnEachDoor = 500;

/** Many hostile characters in every part of the requests of every protocol. */
export const headsScenario: Scenario = {
  name: 'heads',
  mostSeconds: 900,
  async run() {
    const ends: (() => unknown)[] = [];
    const t: Pick<Test, 'teardown'> = { teardown: (end) => void ends.push(end) };
    try {
      const { sent, arrived, faults } = await fuzzHeads(t, seed, attacksOnEachDoor);
      return [
        told('seed', seed),
        told('requests sent', sent),
        told('arrived upstream', arrived),
        held('faults', [faults.length, ...faults.slice(0, 5)].join('; '), '0', faults.length === 0),
      ] satisfies Line[];
    } finally {
      for (const end of ends.reverse()) await end();
    }
  },
};
