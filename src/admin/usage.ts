import type { Ledger } from '../store/store.js';
import { dayMs, dayOf } from '../usage/budget.js';
import { type Cell, csvRow } from '../usage/csv.js';
import {
  type CallSource,
  exportUsage,
  reportUsage,
  type UsageFilter,
  type UsageGrouping,
  type UsageQuery,
  type UsageReport,
  type UsageRow,
} from '../usage/queries.js';
import { type TotalName, totalNames, type UsageTotals } from '../usage/sums.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import { textInSlices } from '../wire/steps.js';
import { type AdminAnswer, invalid, jsonType } from './answer.js';
import { type AdminRoute, route } from './routes.js';

/** Source of usage. */
export type UsageLedger = Pick<Ledger, 'readLines' | 'readSums' | 'calls'>;

const msPerSecond = 1000;

/** Routes `GET /usage`, a report of sums, and `GET /usage/lines`, the finished calls one by one. */
export function usageRoutes(ledger: UsageLedger): readonly AdminRoute[] {
  return [
    route('GET', '/usage', ({ query }) => report(ledger, query)),
    route('GET', '/usage/lines', ({ query }) => lines(ledger, query)),
  ];
}

async function report(store: Pick<Ledger, 'readSums'>, query: URLSearchParams): Promise<AdminAnswer> {
  checkNames(query, ['from', 'to', 'by', 'key', 'model', 'format']);
  const { from, to } = readRange(query, dayOnly);
  const groupBy = readGroupings(query);
  const format = readFormat(query, ['json', 'csv']);
  const firstDay = dayOf(from.start);
  const lastDay = dayOf(to.end - 1);
  const found = await reportUsage(store, { ...readFilter(query), firstDay, lastDay, groupBy });
  return format === 'csv' ? csvReport(found, groupBy) : jsonReport(found, { firstDay, lastDay, groupBy });
}

type ReportScope = Pick<UsageQuery, 'firstDay' | 'lastDay' | 'groupBy'>;

function jsonReport(
  { rows, total, complete }: UsageReport,
  { firstDay, lastDay, groupBy }: ReportScope,
): AdminAnswer {
  function* texts(): Generator<string, void, undefined> {
    const scope = { from: firstDay, to: lastDay, by: groupBy };
    yield `${JSON.stringify(scope).slice(0, -1)},"rows":[`;
    let before = '';
    for (const row of rows) {
      yield before + JSON.stringify({ ...labelsOf(row, groupBy), ...shownTotals(row.totals) });
      before = ',';
    }
    yield `],${JSON.stringify({ total: shownTotals(total), complete }).slice(1)}\n`;
  }
  return { status: 200, contentType: jsonType, body: textInSlices(texts()) };
}

/** Go last in a table: programs read it by the places of its columns. */
const newestNames: readonly TotalName[] = ['videoInputTokens', 'characters'];

function csvReport({ rows, complete }: UsageReport, groupBy: readonly UsageGrouping[]): AdminAnswer {
  const older = totalNames.filter((name) => !newestNames.includes(name));
  const names = [...older, 'mediaSeconds', 'costUsd', ...newestNames] as const;
  function* texts(): Generator<string, void, undefined> {
    yield csvRow([...groupBy, ...names]);
    for (const row of rows) {
      const totals = shownTotals(row.totals);
      yield csvRow([...Object.values(labelsOf(row, groupBy)), ...names.map((name) => totals[name])]);
    }
  }
  return { ...csv(textInSlices(texts())), headers: { 'x-usage-complete': `${complete}` } };
}

/** Returns a row's labels in the requested order. */
function labelsOf(row: UsageRow, groupBy: readonly UsageGrouping[]): Record<string, Cell> {
  const labels = { day: row.day, key: row.keyId, model: row.model };
  return Object.fromEntries(groupBy.map((by) => [by, labels[by] ?? null]));
}

/** Returns the sums as stored, which are exact, and the same in units for people. */
function shownTotals(totals: UsageTotals): UsageTotals & { mediaSeconds: number; costUsd: number } {
  return {
    ...totals,
    mediaSeconds: totals.mediaMs / msPerSecond,
    costUsd: totals.costNanoUsd / nanosPerDollar,
  };
}

async function lines(store: CallSource, query: URLSearchParams): Promise<AdminAnswer> {
  checkNames(query, ['from', 'to', 'key', 'model', 'format']);
  const { from, to } = readRange(query, dayOrTime);
  const format = readFormat(query, ['jsonl', 'csv']);
  const chunks = exportUsage(store, { ...readFilter(query), from: from.start, until: to.end, format });
  // Reports an unreachable store while the response can still have an error status.
  const body = await begun(chunks);
  return format === 'csv' ? csv(body) : { status: 200, contentType: 'application/jsonl', body };
}

/** Reads the first piece before any is sent. */
async function begun(pieces: AsyncGenerator<string>): Promise<AsyncIterable<string>> {
  const first = await pieces.next();
  return (async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* pieces;
  })();
}

function csv(body: AdminAnswer['body']): AdminAnswer {
  return { status: 200, contentType: 'text/csv; charset=utf-8; header=present', body };
}

/*
 * Parses the query of a usage request. Everything here throws a `GatewayError` of status 400 that names the wrong
 * parameter.
 */

/** Days of a report without a start, including its last day. */
const usualDays = 30;

const groupings: readonly UsageGrouping[] = ['day', 'key', 'model'];

/** Refuses unknown and repeated parameters. */
export function checkNames(query: URLSearchParams, known: readonly string[]): void {
  for (const name of new Set(query.keys())) {
    if (!known.includes(name))
      throw invalid(name, `There is no parameter '${name}'; there are ${known.join(', ')}.`);
    if (query.getAll(name).length > 1)
      throw invalid(name, `The parameter '${name}' is given more than once.`);
  }
}

/** Reads the filter: the calls of one key, of one model, or of all if neither is set. */
function readFilter(query: URLSearchParams): UsageFilter {
  const [key, model] = [query.get('key'), query.get('model')];
  return { ...(key === null ? {} : { keyId: key }), ...(model === null ? {} : { model }) };
}

/** Reads the grouping of a report's rows. Defaults to days. */
export function readGroupings(query: URLSearchParams): readonly UsageGrouping[] {
  const given = query.get('by');
  if (given === null) return ['day'];
  if (given === '') return [];
  const names = given.split(',');
  const isKnown = (name: string): name is UsageGrouping => groupings.some((each) => each === name);
  if (!names.every(isKnown) || new Set(names).size < names.length)
    throw invalid('by', `'by' takes some of ${groupings.join(', ')} with commas between, each once.`);
  return names;
}

/** Reads the format of a report. Defaults to the first. */
function readFormat<Format extends string>(
  query: URLSearchParams,
  formats: readonly [Format, ...Format[]],
): Format {
  const given = query.get('format');
  if (given === null) return formats[0];
  const format = formats.find((each) => each === given);
  if (format === undefined) throw invalid('format', `'format' is one of ${formats.join(', ')}.`);
  return format;
}

/** An interval in Unix milliseconds, excluding `end`. */
interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** Accepted form of a time parameter. */
interface TimeForm {
  readonly words: string;
  /** @returns null if the text has another form */
  read(text: string): Stretch | null;
}

const dayForm = /^\d{4}-\d\d-\d\d$/;
const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** A whole day. */
export const dayOnly: TimeForm = {
  words: "a day in UTC such as '2026-03-09'",
  read(text) {
    const start = dayForm.test(text) ? Date.parse(text) : Number.NaN;
    // Some runtimes parse the thirtieth of February as the second of March.
    return Number.isNaN(start) || dayOf(start) !== text ? null : { start, end: start + dayMs };
  },
};

/** A whole day, or a moment. */
const dayOrTime: TimeForm = {
  words: `${dayOnly.words}, or a time such as '2026-03-09T12:00:00Z'`,
  read(text) {
    const at = timeForm.test(text) ? Date.parse(text) : Number.NaN;
    if (Number.isNaN(at)) return dayOnly.read(text);
    return dayOnly.read(text.slice(0, text.indexOf('T'))) === null ? null : { start: at, end: at };
  },
};

/** Reads the range from the start of `from` to the end of `to`. Defaults to the last thirty days. */
export function readRange(
  query: URLSearchParams,
  form: TimeForm,
): { readonly from: Stretch; readonly to: Stretch } {
  const readAt = (name: string, usual: number): Stretch => {
    const text = query.get(name);
    const stretch = form.read(text ?? dayOf(usual));
    if (stretch === null) throw invalid(name, `'${name}' is ${form.words}.`);
    return stretch;
  };
  const to = readAt('to', Date.now());
  const from = readAt('from', to.end - usualDays * dayMs);
  if (from.start >= to.end) throw invalid('from', "'from' does not come before the end of 'to'.");
  return { from, to };
}
