import { type Test, test } from 'tap';
import { type BudgetAccounts, mostDebts } from '../../src/store/accounts.js';
import { createStore } from '../../src/store/create.js';
import { createRecordAccounts } from '../../src/store/record-accounts.js';
import { accountTests, accountTtlMs, damagedAccounts, reservation } from '../suites/accounts.js';
import { postgresSettings } from '../suites/store.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { fc } from '../support/seed.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { SharedRecords } from './shared-records.js';

const unavailable = /budget account/;

function start() {
  const records = new SharedRecords();
  return { records, accounts: createRecordAccounts(records), reserved: (id: string) => records.reserved(id) };
}

for (const [name, holds] of Object.entries(accountTests)) test(name, (t) => holds(t, start()));

test('nothing is written where nothing changes', async (t) => {
  const { accounts, records } = start();
  await accounts.reserve('a', reservation(100, 0, 0));
  t.equal(records.writes, 0);
  await accounts.reserve('a', reservation(100, 100));
  await accounts.reserve('a', reservation(100, 1));
  t.equal(records.writes, 1);
});

test('an account that cannot be read lets nobody spend', async (t) => {
  for (const damaged of [...damagedAccounts, '{"reserved":"1"}']) {
    const { accounts, records } = start();
    records.put('a', damaged);
    await t.rejects(accounts.reserve('a', reservation(100, 1)), unavailable);
    await t.rejects(accounts.giveBack('a', 1, accountTtlMs), unavailable);
  }
});

test('an account that others always change first is given up', async (t) => {
  const { accounts, records } = start();
  records.isBusy = true;
  await t.rejects(accounts.reserve('a', reservation(100, 1)), unavailable);
});

/** A process that reserves, spends some, and gives the rest back. */
async function spendAll(accounts: BudgetAccounts, total: number, want: number): Promise<number> {
  let spent = 0;
  for (;;) {
    const granted = await accounts.reserve('a', reservation(total, want));
    if (granted === 0) return spent;
    const used = Math.ceil(granted / 2);
    spent += used;
    if (granted > used) await accounts.giveBack('a', granted - used, accountTtlMs);
  }
}

test('whatever happens to calls of the store, no more is granted than there is', async () => {
  const process = fc.record({ want: fc.integer({ min: 1, max: 400 }), owed: fc.constantFrom(0, 0, 0, 7) });
  const faults = fc.array(fc.constantFrom('good', 'good', 'good', 'failed', 'lost'), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(fc.array(process, { minLength: 2, maxLength: 6 }), faults, async (processes, fates) => {
      const records = new SharedRecords();
      records.fate = () => fates.pop() ?? 'good';
      let [granted, owed] = [0, 0];
      const run = async (want: number, debt: number): Promise<void> => {
        const accounts = createRecordAccounts(records);
        for (let i = 0; i < 4; i++) {
          await accounts.reserve('a', reservation(1000, want, 1, debt)).then(
            (amount) => {
              granted += amount;
              owed += debt;
            },
            () => {},
          );
        }
      };
      await Promise.all(processes.map(({ want, owed: debt }) => run(want, debt)));
      const reserved = records.reserved('a');
      // What a caller was not told of is reserved, and nobody's.
      return granted <= 1000 && reserved >= granted + owed;
    }),
    { numRuns: 30 },
  );
});

test('processes that meet at an account spend all of it together, and no more', async (t) => {
  const { records, reserved } = start();
  const spent = await Promise.all(
    [1, 7, 50, 200].map((want) => spendAll(createRecordAccounts(records), 1000, want)),
  );
  t.equal(
    spent.reduce((sum, each) => sum + each, 0),
    1000,
  );
  t.equal(reserved('a'), 1000);
});

/** Holds that what hosts have reserved is told by every host, whatever keeps the accounts. */
async function tellsReserved(t: Test, settings: Parameters<typeof createStore>[0]): Promise<void> {
  const stores = [createStore(settings), createStore(settings)];
  t.teardown(() => Promise.all(stores.map((store) => store.close())));
  const hosts = stores.map((store) => store.accounts);
  const told = (account: string) => Promise.all(hosts.map((host) => host.reservedOf(account)));
  const name = "key:te'am \u0000 %:budget:2026-11";
  for (const account of [name, 'l'.repeat(5000)]) {
    t.strictSame(await told(account), [0, 0]);
    for (const host of hosts) await host.reserve(account, reservation(100, 30));
    t.strictSame(await told(account), [60, 60]);
    await hosts[0]?.giveBack(account, 20, accountTtlMs);
    t.strictSame(await told(account), [40, 40]);
  }
  const owing = (debt: string | null) => reservation(100, 10, 1, 20, debt);
  for (const debt of ['one', 'one', 'two', 'one', null]) await hosts[0]?.reserve('owing', owing(debt));
  t.strictSame(await told('owing'), [100, 100], 'what is told again is taken once');
  const back = { ...reservation(100, 0, 0), owed: -30, debt: 'video_1' };
  for (const host of [...hosts, ...hosts]) t.equal(await host.reserve('owing', back), 0);
  t.strictSame(await told('owing'), [70, 70], 'nor is it given back twice');
  await hosts[0]?.reserve('owing', { ...back, owed: -1000, debt: 'video_2' });
  t.strictSame(await told('owing'), [0, 0], 'and never more than there is');
  for (let number = 0; number < mostDebts + 8; number++)
    for (const host of hosts) await host.reserve('many', reservation(1000, 0, 0, 1, `debt ${number} "`));
  t.strictSame(await told('many'), [mostDebts + 8, mostDebts + 8]);
  const value = (await stores[0]?.get('budgets', 'many'))?.value ?? '';
  t.equal(JSON.parse(value).debts.length, mostDebts);
  await stores[0]?.create('budgets', 'damaged', '{"reserved":-1}', accountTtlMs);
  for (const host of hosts) await t.rejects(host.reservedOf('damaged'), /cannot be read/);
}

async function meetAtStore(t: Test, settings: Parameters<typeof createStore>[0]): Promise<void> {
  const stores = [createStore(settings), createStore(settings), createStore(settings)];
  t.teardown(() => Promise.all(stores.map((store) => store.close())));
  const spent = await Promise.all(
    stores.map((store, index) => spendAll(store.accounts, 1000, 100 + index * 50)),
  );
  t.equal(
    spent.reduce((sum, each) => sum + each, 0),
    1000,
  );
}

test('so do those that share an embedded store', async (t) => {
  const folder = temporaryFolder(t);
  await meetAtStore(t, { kind: 'embedded', path: folder, taskDays: 7 });
  await tellsReserved(t, { kind: 'embedded', path: folder, taskDays: 7 });
});

test('and those that share a PostgreSQL', { skip: skipWithoutPostgres() }, async (t) => {
  const { port } = await postgresFor(t);
  await meetAtStore(t, postgresSettings(port));
  await tellsReserved(t, postgresSettings(port));
});
