import t, { test } from 'tap';
import { createPostgresStore } from '../../src/store/postgres.js';
import { postgresSettings } from '../suites/store.js';
import { noPostgres, startPostgres } from '../support/postgres.js';

const server = await startPostgres();
t.teardown(() => server?.stop());
const skip = server === null && noPostgres;

const store = createPostgresStore(postgresSettings(server?.port ?? 0));
t.teardown(() => store.close());
const { accounts } = store;
const ttlMs = 60_000;
const unreadable = /cannot be read/;
const reservation = (limit: number, want: number, least = 1, owed = 0, debt: string | null = null) => ({
  limit,
  want,
  least,
  owed,
  debt,
  ttlMs,
});
const reserved = (account: string) =>
  server?.query(`SELECT reserved_nano_usd FROM gateway.budgets WHERE budget = '${account}'`);

test('what is wanted is reserved as long as there is any', { skip }, async (t) => {
  t.equal(await accounts.reserve('a', reservation(100, 40)), 40);
  t.equal(await accounts.reserve('a', reservation(100, 40)), 40);
  t.equal(await accounts.reserve('a', reservation(100, 40, 21)), 0, 'too little helps nobody');
  t.equal(await accounts.reserve('a', reservation(100, 40, 20)), 20);
  t.equal(await accounts.reserve('a', reservation(100, 40)), 0);
  t.equal(reserved('a'), '100');
  t.equal(await accounts.reserve('a', reservation(150, 100)), 50, 'another limit holds from then on');
  t.equal(await accounts.reserve('a', reservation(120, 100)), 0);
});

test('what is given back can be reserved again, and no more than was reserved', { skip }, async (t) => {
  await accounts.reserve('b', reservation(100, 100));
  await accounts.giveBack('b', 30, ttlMs);
  t.equal(await accounts.reserve('b', reservation(100, 100)), 30);
  await accounts.giveBack('b', 1000, ttlMs);
  t.equal(reserved('b'), '0');
});

test('what is owed is taken in any case, and before all else', { skip }, async (t) => {
  t.equal(await accounts.reserve('c', reservation(100, 50, 1, 70)), 30);
  t.equal(await accounts.reserve('c', reservation(100, 50, 1, 70)), 0);
  t.equal(reserved('c'), '170');
  await accounts.reserve('c', reservation(100, 0, 0, Number.MAX_SAFE_INTEGER));
  t.equal(
    await accounts.reserve('c', reservation(100, 1)),
    0,
    'an absurd debt leaves an account that can be read',
  );
});

test('what is asked at once is done in the order in which it was asked', { skip }, async (t) => {
  const granted = await Promise.all(
    [60, 60, 60].map((want) => accounts.reserve('d', reservation(150, want))),
  );
  t.strictSame(granted, [60, 60, 30]);
  const [, again] = await Promise.all([
    accounts.giveBack('d', 50, ttlMs),
    accounts.reserve('d', reservation(150, 80)),
  ]);
  t.equal(again, 50);
});

test('an account that cannot be read lets nobody spend, and does no harm to others', { skip }, async (t) => {
  const damages = ['', 'null', '[]', '{}', '{"reserved":-1}', '{"reserved":1.5}', '{"reserved":"x"}'];
  for (const [index, damaged] of damages.entries()) {
    const account = `e${index}`;
    await store.create('budgets', account, damaged, ttlMs);
    const [, other] = await Promise.all([
      t.rejects(accounts.reserve(account, reservation(100, 1)), unreadable),
      accounts.reserve(`f${index}`, reservation(100, 1)),
    ]);
    t.equal(other, 1);
    await t.rejects(accounts.giveBack(account, 1, ttlMs), unreadable);
    t.equal((await store.get('budgets', account))?.value, damaged, 'it stays as it is');
  }
});

test('an account begins anew when its time is over', { skip }, async (t) => {
  await accounts.reserve('g', { ...reservation(100, 100), ttlMs: 20 });
  await new Promise((resolve) => setTimeout(resolve, 40));
  t.equal(await accounts.reserve('g', reservation(100, 100)), 100);
});
