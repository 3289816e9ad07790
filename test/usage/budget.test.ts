import { test } from 'tap';
import { budgetPeriod, dayOf, dayStart } from '../../src/usage/budget.js';
import { fc } from '../support/seed.js';

const at = (text: string): number => Date.parse(text);
const kinds = ['day', 'week', 'month'] as const;

test('a period ends where the next one begins', async (t) => {
  const last = at('2026-03-08T23:59:59.999Z');
  t.same(budgetPeriod('day', last), {
    id: '2026-03-08',
    startsAt: at('2026-03-08'),
    endsAt: at('2026-03-09'),
  });
  t.equal(budgetPeriod('day', last + 1).id, '2026-03-09');
  // The eighth is a Sunday.
  t.same(budgetPeriod('week', last), {
    id: '2026-W10',
    startsAt: at('2026-03-02'),
    endsAt: at('2026-03-09'),
  });
  t.equal(budgetPeriod('week', last + 1).id, '2026-W11');
  const month = at('2026-03-31T23:59:59.999Z');
  t.same(budgetPeriod('month', month), {
    id: '2026-03',
    startsAt: at('2026-03-01'),
    endsAt: at('2026-04-01'),
  });
  t.equal(budgetPeriod('month', month + 1).id, '2026-04');
});

test('a week belongs to the year of its Thursday', async (t) => {
  const weeks = {
    '2020-12-31': '2020-W53',
    '2021-01-03': '2020-W53',
    '2021-01-04': '2021-W01',
    '2024-12-29': '2024-W52',
    '2024-12-30': '2025-W01',
    '2026-01-01': '2026-W01',
    '2027-01-01': '2026-W53',
    '1970-01-01': '1970-W01',
    '1969-12-28': '1969-W52',
  };
  for (const [day, id] of Object.entries(weeks)) t.equal(budgetPeriod('week', at(day)).id, id, day);
});

test('months have their lengths', async (t) => {
  const days = (text: string) => {
    const { startsAt, endsAt } = budgetPeriod('month', at(text));
    return (endsAt - startsAt) / 86_400_000;
  };
  t.equal(days('2024-02-29'), 29);
  t.equal(days('2026-02-01'), 28);
  t.equal(days('2100-02-01'), 28);
  t.equal(days('2026-12-31'), 31);
  t.equal(days('0050-02-01'), 28, 'years below 100 too');
});

test('every time is in one period of each kind, and its neighbours are others', async (t) => {
  const times = fc.integer({ min: -6e13, max: 2e14 });
  fc.assert(
    fc.property(times, fc.constantFrom(...kinds), (time, per) => {
      const { id, startsAt, endsAt } = budgetPeriod(per, time);
      const first = budgetPeriod(per, startsAt);
      const last = budgetPeriod(per, endsAt - 1);
      const within = startsAt <= time && time < endsAt && first.id === id && last.id === id;
      const neighbours = [budgetPeriod(per, startsAt - 1), budgetPeriod(per, endsAt)];
      return (
        within &&
        neighbours.every((each) => each.id !== id) &&
        neighbours[0]?.endsAt === startsAt &&
        neighbours[1]?.startsAt === endsAt &&
        (per !== 'week' || new Date(startsAt).getUTCDay() === 1)
      );
    }),
  );
  t.pass();
});

test('a time that no calendar has is refused', async (t) => {
  for (const per of kinds) t.throws(() => budgetPeriod(per, Number.NaN), RangeError);
  t.throws(() => dayOf(Number.POSITIVE_INFINITY), RangeError);
  t.equal(dayOf(dayStart(at('2026-03-09T12:00Z'))), '2026-03-09');
});
