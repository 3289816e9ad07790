import { utcDay } from '../utc.js';
import type { KeyBudget, KeyEntry } from './key.js';

const dayMs = 86_400_000;

/** The calendar period of a budget that contains a time, in UTC. */
export interface BudgetWindow {
  readonly per: KeyBudget['per'];
  /** First and last day, both included: `2026-03-09`. */
  readonly from: string;
  readonly to: string;
  /** Unix milliseconds: start of the next period. */
  readonly endsAt: number;
}

/**
 * The period of a time, as the gateway counts: a week begins on Monday.
 * @param now Unix milliseconds
 */
export function budgetWindow(per: KeyBudget['per'], now: number): BudgetWindow {
  const date = new Date(now);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  const sinceMonday = (date.getUTCDay() + 6) % 7;
  const [start, end] = {
    day: [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)],
    week: [Date.UTC(year, month, day - sinceMonday), Date.UTC(year, month, day - sinceMonday + 7)],
    month: [Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1)],
  }[per] as [number, number];
  return { per, from: utcDay(start), to: utcDay(end - dayMs), endsAt: end };
}

/** The distinct windows of the budgets of keys, for one request each. */
export function windowsOf(keys: readonly Pick<KeyEntry, 'budget'>[], now: number): readonly BudgetWindow[] {
  const periods = new Set(keys.flatMap(({ budget }) => (budget === null ? [] : [budget.per])));
  return [...periods].map((per) => budgetWindow(per, now));
}

/** The path of the request for the cost of every key within a window. */
export function spendingPath({ from, to }: BudgetWindow): string {
  return `/usage?${new URLSearchParams({ by: 'key', from, to })}`;
}

/** The usage report by key. */
export interface Spending {
  readonly rows: readonly { readonly key: string | null; readonly costUsd: number }[];
  /** False if keys were left out. */
  readonly complete: boolean;
}

/** The spending in a window. */
export interface WindowSpending {
  readonly window: BudgetWindow;
  readonly spending: Spending;
  /** Unix milliseconds. */
  readonly askedAt: number;
}

interface BudgetUse {
  readonly used: number;
  /** Never below 0. */
  readonly left: number;
  /** Fraction of the budget, from 0; above 1 if the last calls cost more than was left. */
  readonly share: number;
}

/** @returns null if unknown */
export function budgetUse(
  { id, budget }: Pick<KeyEntry, 'id' | 'budget'>,
  spending: Spending,
): BudgetUse | null {
  const row = spending.rows.find(({ key }) => key === id);
  if (budget === null || (row === undefined && !spending.complete)) return null;
  const used = row?.costUsd ?? 0;
  return { used, left: Math.max(0, budget.usd - used), share: used / budget.usd };
}
