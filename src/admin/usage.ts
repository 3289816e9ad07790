import type { Ledger } from '../store/store.js';
import { dayOf } from '../usage/budget.js';
import { type Cell, csvRow } from '../usage/csv.js';
import {
  type CallSource,
  exportUsage,
  reportUsage,
  type UsageGrouping,
  type UsageQuery,
  type UsageReport,
  type UsageRow,
} from '../usage/queries.js';
import { totalNames, type UsageTotals } from '../usage/sums.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import { textInSlices } from '../wire/steps.js';
import { type AdminAnswer, jsonType } from './answer.js';
import { type AdminRoute, route } from './routes.js';
import {
  checkNames,
  dayOnly,
  dayOrTime,
  readChoice,
  readFilter,
  readGroupings,
  readRange,
} from './usage-query.js';

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
  const format = readChoice(query, 'format', ['json', 'csv'] as const);
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

/** Goes last in a table: programs read it by the places of its columns. */
const newestName = 'videoInputTokens';

function csvReport({ rows, complete }: UsageReport, groupBy: readonly UsageGrouping[]): AdminAnswer {
  const older = totalNames.filter((name) => name !== newestName);
  const names = [...older, 'mediaSeconds', 'costUsd', newestName] as const;
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
  const format = readChoice(query, 'format', ['jsonl', 'csv'] as const);
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
