import type { Budget } from '../config/types.js';

/** A calendar period in UTC. */
interface BudgetPeriod {
  /** `2026-03-09`, `2026-W11` (ISO 8601 week) or `2026-03`: unique to each period. */
  readonly id: string;
  /** Unix milliseconds. */
  readonly startsAt: number;
  /** Unix milliseconds: start of the next one. */
  readonly endsAt: number;
}

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
const weekMs = 7 * dayMs;
/** Unix time began on a Thursday. */
const mondayMs = -3 * dayMs;

/**
 * The period that contains a time. A week begins on Monday.
 * @param at Unix milliseconds
 * @throws RangeError when the time is invalid
 */
export function budgetPeriod(per: Budget['per'], at: number): BudgetPeriod {
  switch (per) {
    case 'day': {
      const startsAt = dayStart(at);
      return { id: dayOf(startsAt), startsAt, endsAt: startsAt + dayMs };
    }
    case 'week': {
      const startsAt = Math.floor((at - mondayMs) / weekMs) * weekMs + mondayMs;
      return { id: weekId(startsAt), startsAt, endsAt: startsAt + weekMs };
    }
    case 'month': {
      const date = new Date(at);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
      const startsAt = monthStart(year, month);
      const day = dayOf(startsAt);
      return { id: day.slice(0, -'-01'.length), startsAt, endsAt: monthStart(year, month + 1) };
    }
  }
}

/**
 * The day of a time in UTC, as `2026-03-09`.
 * @throws RangeError when the time is invalid
 */
export function dayOf(at: number): string {
  const text = new Date(at).toISOString();
  return text.slice(0, text.indexOf('T'));
}

/** Start of the day of a time, in Unix milliseconds. */
export function dayStart(at: number): number {
  return Math.floor(at / dayMs) * dayMs;
}

/** Not by `Date.UTC`, which maps the years up to 99 to the 20th century. */
function monthStart(year: number, month: number): number {
  return new Date(0).setUTCFullYear(year, month, 1);
}

/** A week belongs to the year of its Thursday, and the first week contains January 4. */
function weekId(monday: number): string {
  const thursday = monday + 3 * dayMs;
  const year = new Date(thursday).getUTCFullYear();
  const number = Math.floor((thursday - monthStart(year, 0)) / weekMs) + 1;
  return `${dayOf(thursday).replace(/-\d\d-\d\d$/, '')}-W${`${number}`.padStart(2, '0')}`;
}
