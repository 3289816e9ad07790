import { test } from 'tap';
import { holdDatabase } from '../stress/database.js';
import { skipWithoutPostgres } from '../support/postgres.js';
import { seed } from '../support/seed.js';

const calls = 400;
const skip = skipWithoutPostgres();

/** What happens to the database, and how that is called. */
const faults = {
  killed: 'that is killed',
  full: 'whose disk is full',
  crowded: 'whose connections others take',
  cut: 'that nothing comes from',
} as const;

for (const fault of ['killed', 'full', 'crowded', 'cut'] as const) {
  test(`under load a database ${faults[fault]} fails no call, and each is charged once`, {
    skip,
  }, async (t) => {
    const figures = await holdDatabase({ calls, fault, goneMs: 3000, seed });
    const { exact, near, different, failed, told, untimely, budgets, during } = figures;
    t.comment(`exact ${exact}, near ${near}, ${during} in the fault`, told);
    t.strictSame(different.slice(0, 10), [], 'bill and ledger agree');
    t.strictSame(
      failed.filter(({ status }) => status !== 503),
      [],
      'no call fails that needs no store',
    );
    // Of a primary that gets no processor for a second nobody has a budget.
    t.ok(failed.length <= calls / 50, `${failed.length} were refused`);
    t.strictSame(untimely, [], 'the log tells it once');
    t.ok((told.get('the store accepts no ledger entries: they wait in memory') ?? 0) > 0);
    for (const { account, spent, charged, most } of budgets)
      t.ok(spent >= charged && spent <= most, `${account}: ${charged} are charged, ${spent} spent`);
    t.equal(budgets.length, 2);
  });
}
