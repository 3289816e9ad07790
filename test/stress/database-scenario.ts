import { type DatabaseFaultName, databaseFaults } from '../support/database-faults.js';
import { seed } from '../support/seed.js';
import { type DatabaseFigures, holdDatabase } from './database.js';
import { held, type Line, told } from './report.js';
import type { Scenario } from './scenario.js';

const calls = 6000;
const goneMs = 30_000;

/** Bill, ledger and budgets of two hosts whose database has a fault for half a minute under load. */
export const databaseScenarios: readonly Scenario[] = faultNames().map((fault) => ({
  name: `database-${fault}`,
  mostSeconds: 300,
  run: async (seconds) =>
    linesOf(await holdDatabase({ calls, fault, goneMs: seconds === null ? goneMs : seconds * 1000, seed })),
}));

function faultNames(): readonly DatabaseFaultName[] {
  return Object.keys(databaseFaults).filter((name): name is DatabaseFaultName => name in databaseFaults);
}

function linesOf(figures: DatabaseFigures): readonly Line[] {
  const { exact, near, different, failed, during, budgets, untimely } = figures;
  const usd = (nano: number): string => `${(nano / 1e9).toFixed(6)} USD`;
  return [
    told('seed', seed),
    told('calls', calls),
    told('of these while it lasted', during),
    told('agree to the unit', exact),
    told('marked as not exact, within 20 %', near),
    held('differ', different.length, '0', different.length === 0),
    ...different.slice(0, 1).map((first) => told('the first of them', JSON.stringify(first))),
    held('failed that need no store', failed.length, '0', failed.length === 0),
    ...[...figures.told].map(([message, times]) => told(message, times)),
    held('told again before it was over', untimely.join('; ') || 0, '0', untimely.length === 0),
    ...budgets.map(({ account, spent, charged, most }) =>
      held(
        `left as spent of ${account}`,
        usd(spent),
        `${usd(charged)} to ${usd(most)}`,
        spent >= charged && spent <= most,
      ),
    ),
  ];
}
