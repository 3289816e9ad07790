import type { Test } from 'tap';
import type { BudgetAccounts, Reservation } from '../../src/store/accounts.js';

export const accountTtlMs = 60_000;

export const reservation = (
  limit: number,
  want: number,
  least = 1,
  owed = 0,
  debt: string | null = null,
): Reservation => ({ limit, want, least, owed, debt, ttlMs: accountTtlMs });

/** Invalid values of an account. */
export const damagedAccounts = [
  ...['', 'null', '[]', '{}'],
  ...['{"reserved":-1}', '{"reserved":1.5}', '{"reserved":"x"}'],
];

/** Accounts without any units, and what is reserved of one. */
interface AccountsUnderTest {
  readonly accounts: BudgetAccounts;
  readonly reserved: (account: string) => number;
}

/** Registers the tests that accounts pass in every kind of store. */
export const accountTests: Readonly<Record<string, (t: Test, under: AccountsUnderTest) => Promise<void>>> = {
  'what is wanted is reserved as long as there is any': async (t, { accounts, reserved }) => {
    t.equal(await accounts.reserve('a', reservation(100, 40)), 40);
    t.equal(await accounts.reserve('a', reservation(100, 40)), 40);
    t.equal(await accounts.reserve('a', reservation(100, 40, 21)), 0, 'too little helps nobody');
    t.equal(await accounts.reserve('a', reservation(100, 40, 20)), 20);
    t.equal(await accounts.reserve('a', reservation(100, 40)), 0);
    t.equal(reserved('a'), 100);
    t.equal(await accounts.reserve('b', reservation(100, 40)), 40, 'each account is one of its own');
  },
  'another limit holds from the next reservation on': async (t, { accounts }) => {
    t.equal(await accounts.reserve('c', reservation(100, 100)), 100);
    t.equal(await accounts.reserve('c', reservation(150, 100)), 50);
    t.equal(await accounts.reserve('c', reservation(120, 100)), 0);
  },
  'what is given back can be reserved again, and no more than was reserved': async (t, under) => {
    const { accounts, reserved } = under;
    await accounts.reserve('d', reservation(100, 100));
    await accounts.giveBack('d', 30, accountTtlMs);
    t.equal(await accounts.reserve('d', reservation(100, 100)), 30);
    await accounts.giveBack('d', 1000, accountTtlMs);
    t.equal(reserved('d'), 0);
  },
  'what is owed is taken in any case, and before all else': async (t, { accounts, reserved }) => {
    t.equal(await accounts.reserve('e', reservation(100, 50, 1, 70)), 30);
    t.equal(await accounts.reserve('e', reservation(100, 50, 1, 70)), 0);
    t.equal(reserved('e'), 170);
    await accounts.reserve('e', reservation(100, 0, 0, Number.MAX_SAFE_INTEGER));
    const absurd = await accounts.reserve('e', reservation(100, 1));
    t.equal(absurd, 0, 'an absurd debt leaves an account that can be read');
  },
};
