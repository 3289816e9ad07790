import { utcDay } from '../utc.js';

export const groupings = ['day', 'model', 'key'] as const;
export type Grouping = (typeof groupings)[number];

const ranges = ['today', '7 days', '30 days', 'custom'] as const;
export type RangeName = (typeof ranges)[number];

/** A query of the ledger. Days are in UTC, both included. */
export interface UsageAsked {
  readonly from: string;
  readonly to: string;
  readonly by: readonly Grouping[];
  /** Empty for calls of all keys, or for all models. */
  readonly key: string;
  readonly model: string;
}

const dayMs = 86_400_000;
/** Most days of a query, since each has a bar in the chart. */
const maxDays = 1000;
const daysOf: Readonly<Record<Exclude<RangeName, 'custom'>, number>> = {
  today: 1,
  '7 days': 7,
  '30 days': 30,
};

/**
 * The days of a range that ends today.
 * @param now Unix milliseconds
 */
export function rangeDays(
  name: Exclude<RangeName, 'custom'>,
  now: number,
): { readonly from: string; readonly to: string } {
  return { from: utcDay(now - (daysOf[name] - 1) * dayMs), to: utcDay(now) };
}

/** @returns what is wrong with the typed days, or null */
export function rangeProblem(from: string, to: string): string | null {
  if (!isDay(from) || !isDay(to)) return 'Both days are needed.';
  if (from > to) return 'The first day comes after the last.';
  return Date.parse(to) - Date.parse(from) >= maxDays * dayMs ? `At most ${maxDays} days.` : null;
}

/** The path of the report. @param format for a table instead of JSON */
export function reportPath(asked: UsageAsked, format?: 'csv'): string {
  const by = groupings.filter((each) => asked.by.includes(each)).join(',');
  return `/usage?${inScope(asked, new URLSearchParams({ by }), format)}`;
}

/** The path of the calls one by one. */
export function linesPath(asked: UsageAsked, format: 'csv' | 'jsonl'): string {
  return `/usage/lines?${inScope(asked, new URLSearchParams(), format)}`;
}

/** The name of an exported file. */
export function exportName(what: 'usage' | 'calls', { from, to }: UsageAsked, ending: string): string {
  return `${what}-${from === to ? from : `${from}-to-${to}`}.${ending}`;
}

/** All days from the first to the last, including those without calls. */
export function daysBetween(from: string, to: string): readonly string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += dayMs) days.push(utcDay(at));
  return days;
}

function inScope(
  { from, to, key, model }: UsageAsked,
  query: URLSearchParams,
  format?: string,
): URLSearchParams {
  query.set('from', from);
  query.set('to', to);
  if (key !== '') query.set('key', key);
  if (model !== '') query.set('model', model);
  if (format !== undefined) query.set('format', format);
  return query;
}

function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
}
