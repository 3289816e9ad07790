import { signal } from '@preact/signals';
import { askJson } from '../api.js';
import { messageOf } from '../words.js';
import { type BudgetWindow, type Spending, spendingPath, type WindowSpending, windowsOf } from './budget.js';
import type { KeyEntry, KeyPage } from './key.js';
import type { LimitInUse } from './limits.js';
import type { KeyUse } from './row.js';

const pageLength = 100;
/** Most keys of a page of the gateway. */
const longestPage = 1000;
/** How long spending is cached, since sums of many keys over a month are expensive for the gateway. */
const spendingMs = 60_000;

/** The keys read from the gateway, with their usage. */
export type KeyList = ReturnType<typeof createKeyList>;

export function createKeyList() {
  const keys = signal<readonly KeyEntry[]>([]);
  const damaged = signal<readonly string[]>([]);
  /** Start of the next page; null at the end. */
  const next = signal<string | null>(null);
  const use = signal<KeyUse>({ limits: new Map(), spending: new Map() });
  const isRead = signal(false);
  const problem = signal('');
  /** Number of the last load; an older one that ends later is ignored. */
  let loading = 0;
  let isBusy = false;

  /** Reads the shown part of the list again, or its next page. */
  const load = async (isNext: boolean): Promise<void> => {
    const mine = ++loading;
    isBusy = true;
    try {
      const wanted = isNext ? pageLength : Math.max(pageLength, keys.value.length);
      const read: KeyEntry[] = [];
      const unreadable: string[] = [];
      let cursor = isNext ? next.value : null;
      do {
        const limit = Math.min(wanted - read.length, longestPage);
        const page: KeyPage = await askJson<KeyPage>(keysPath(limit, cursor));
        if (mine !== loading) return;
        read.push(...page.keys);
        unreadable.push(...page.damaged);
        cursor = page.next;
      } while (cursor !== null && read.length < wanted);
      const known = new Map((isNext ? keys.value : []).map((key) => [nameOf(key), key]));
      for (const key of read) known.set(nameOf(key), key);
      keys.value = [...known.values()];
      damaged.value = unreadable;
      next.value = cursor;
      isRead.value = true;
      use.value = await readUse(keys.value, use.value);
      problem.value = '';
    } catch (error) {
      if (mine === loading) problem.value = messageOf(error);
    } finally {
      if (mine === loading) isBusy = false;
    }
  };
  return {
    keys,
    damaged,
    next,
    use,
    isRead,
    problem,
    reload: (): Promise<void> => load(false),
    more: (): Promise<void> => load(true),
    /** Reloads, unless a load is in flight. */
    refresh: (): void => {
      if (!isBusy) void load(false);
    },
    /** Clears the cached spending. */
    forgetUse: (): void => {
      use.value = { limits: use.value.limits, spending: new Map() };
    },
  };
}

/** The identifier of a row: an overridden key is listed beside the key that overrides it. */
export function nameOf({ id, overridden }: KeyEntry): string {
  return overridden === true ? `${id}/overridden` : id;
}

async function readUse(keys: readonly KeyEntry[], before: KeyUse): Promise<KeyUse> {
  const windows = windowsOf(keys, Date.now());
  const [{ limits }, ...spendings] = await Promise.all([
    askJson<{ limits: readonly LimitInUse[] }>('/limits'),
    ...windows.map((window) => spendingIn(window, before)),
  ] as const);
  return {
    limits: new Map(limits.map((each) => [each.name, each])),
    spending: new Map(spendings.map((each) => [each.window.per, each])),
  };
}

/** The spending in a window, from the cache if it is recent. */
async function spendingIn(window: BudgetWindow, { spending }: KeyUse): Promise<WindowSpending> {
  const known = spending.get(window.per);
  const isRecent = known?.window.from === window.from && Date.now() - known.askedAt < spendingMs;
  if (known !== undefined && isRecent) return known;
  const askedAt = Date.now();
  return { window, askedAt, spending: await askJson<Spending>(spendingPath(window)) };
}

function keysPath(limit: number, cursor: string | null): string {
  return `/keys?${new URLSearchParams({ limit: `${limit}`, ...(cursor === null ? {} : { cursor }) })}`;
}
