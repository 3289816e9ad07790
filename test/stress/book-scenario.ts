import type { Difference } from '../support/billing/compare.js';
import { seed } from '../support/seed.js';
import { type BookFigures, type BookPlan, holdBook, type Victim } from './book.js';
import { held, type Line, told } from './report.js';
import type { Scenario } from './scenario.js';

const calls = 20_000;
/** In a shorter run: calls for each second of its duration. */
const callsOfSecond = 60;
/** Share of the bill by which all calls that no kill explains may be off together. */
const mostOff = 0.001;

/** Compares a vendor's bill with the ledger of one host. */
export const bookScenario = bookOf('book', 1, ['worker', 'primary', 'host', 'worker', 'primary', 'host']);
/** The same for two hosts that share a database. */
export const bookOfHostsScenario = bookOf('book-hosts', 2, [
  'worker',
  'primary',
  'database',
  'worker',
  'primary',
  'database',
]);

function bookOf(name: string, hosts: number, victims: readonly Victim[]): Scenario {
  return {
    name,
    mostSeconds: 900,
    run: async (seconds) => {
      const plan = { calls: seconds === null ? calls : seconds * callsOfSecond, hosts, victims, seed };
      return linesOf(plan, await holdBook(plan));
    },
  };
}

function linesOf({ calls: count, seed: from }: BookPlan, figures: BookFigures): readonly Line[] {
  const { exact, near, interrupted, kills, ofKills, unexplained, failed, doubled } = figures;
  const { billedNanoUsd, chargedNanoUsd, offNanoUsd, billedTwice } = figures;
  const first = unexplained[0];
  const off = offNanoUsd / billedNanoUsd;
  const usd = (nano: number): string => `${(nano / 1e9).toFixed(6)} USD`;
  return [
    told('seed', from),
    told('killed', kills.map(({ victim }) => victim).join(', ')),
    told('calls', count),
    told('agree to the unit', exact),
    told('marked as not exact, within 20 %', near),
    told('interrupted', interrupted),
    told('differ by a kill', [...ofKills].map(([victim, number]) => `${victim} ${number}`).join(', ') || 0),
    held('differ without a cause', unexplained.length, '0', first === undefined),
    ...(first === undefined
      ? []
      : [
          told('when they were billed', whenBilled(figures)),
          told('the first of them', JSON.stringify(first)),
        ]),
    told('billed for an attempt that failed, too', billedTwice),
    told('billed', usd(billedNanoUsd)),
    told('charged', usd(chargedNanoUsd)),
    held(
      'off, kills aside',
      `${usd(offNanoUsd)}, ${(off * 100).toFixed(4)} %`,
      '< 0.1 %',
      Math.abs(off) < mostOff,
    ),
    held('failed with no kill near', failed.length, '0', failed.length === 0),
    held('charged twice', doubled, '0', doubled === 0),
  ];
}

/**
 * Lists how many of the differences that no kill explains were billed how long after, or before, the nearest kill.
 */
function whenBilled({ unexplained, kills }: BookFigures): string {
  const groups = new Map<string, number>();
  for (const difference of unexplained) {
    const when = nearestOf(difference, kills);
    groups.set(when, (groups.get(when) ?? 0) + 1);
  }
  return [...groups].map(([when, count]) => `${count} at ${when}`).join(', ');
}

function nearestOf({ bills }: Difference, kills: BookFigures['kills']): string {
  const billedAt = bills[0]?.at ?? 0;
  const [nearest] = kills.toSorted(
    (one, other) => Math.abs(one.at - billedAt) - Math.abs(other.at - billedAt),
  );
  if (nearest === undefined) return 'no kill';
  return `${((billedAt - nearest.at) / 1000).toFixed(1)} s of ${nearest.victim} of host ${nearest.host}`;
}
