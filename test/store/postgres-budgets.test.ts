import t, { test } from 'tap';
import { createPostgresStore } from '../../src/store/postgres.js';
import { accountTests, accountTtlMs, damagedAccounts, reservation } from '../suites/accounts.js';
import { postgresSettings } from '../suites/store.js';
import { noPostgres, startPostgres } from '../support/postgres.js';

const server = await startPostgres();
t.teardown(() => server?.stop());
const skip = server === null && noPostgres;

const store = createPostgresStore(postgresSettings(server?.port ?? 0));
t.teardown(() => store.close());
const { accounts } = store;
const unreadable = /cannot be read/;
const reserved = (account: string) =>
  Number(server?.query(`SELECT reserved_nano_usd FROM gateway.budgets WHERE budget = '${account}'`));

for (const [name, holds] of Object.entries(accountTests))
  test(name, { skip }, (t) => holds(t, { accounts, reserved }));

test('what is asked at once is done in the order in which it was asked', { skip }, async (t) => {
  const granted = await Promise.all(
    [60, 60, 60].map((want) => accounts.reserve('at once', reservation(150, want))),
  );
  t.strictSame(granted, [60, 60, 30]);
  const [, again] = await Promise.all([
    accounts.giveBack('at once', 50, accountTtlMs),
    accounts.reserve('at once', reservation(150, 80)),
  ]);
  t.equal(again, 50);
});

test('an account that cannot be read lets nobody spend, and does no harm to others', { skip }, async (t) => {
  for (const [index, damaged] of damagedAccounts.entries()) {
    const account = `damaged${index}`;
    await store.create('budgets', account, damaged, accountTtlMs);
    const [, other] = await Promise.all([
      t.rejects(accounts.reserve(account, reservation(100, 1)), unreadable),
      accounts.reserve(`f${index}`, reservation(100, 1)),
    ]);
    t.equal(other, 1);
    await t.rejects(accounts.giveBack(account, 1, accountTtlMs), unreadable);
    t.equal((await store.get('budgets', account))?.value, damaged, 'it stays as it is');
  }
});

test('an account begins anew when its time is over', { skip }, async (t) => {
  await accounts.reserve('over', { ...reservation(100, 100), ttlMs: 20 });
  await new Promise((resolve) => setTimeout(resolve, 40));
  t.equal(await accounts.reserve('over', reservation(100, 100)), 100);
});
