import { test } from 'tap';
import { checkNames, dayOnly, readGroupings, readRange } from '../../../src/admin/usage.js';
import {
  daysBetween,
  exportName,
  linesPath,
  rangeDays,
  rangeProblem,
  reportPath,
  type UsageAsked,
} from '../../../src/console/usage/query.js';

const now = Date.parse('2026-11-22T23:59:59.999Z');
const asked: UsageAsked = { from: '2026-11-16', to: '2026-11-22', by: ['key', 'day'], key: '', model: '' };

test('ranges end today, today among their days', async (t) => {
  t.same(rangeDays('today', now), { from: '2026-11-22', to: '2026-11-22' });
  t.same(rangeDays('7 days', now), { from: '2026-11-16', to: '2026-11-22' });
  t.same(rangeDays('30 days', now), { from: '2026-10-24', to: '2026-11-22' });
});

test('days that were typed are looked at before the ledger is asked', async (t) => {
  t.equal(rangeProblem('2026-11-01', '2026-11-22'), null);
  t.equal(rangeProblem('2026-11-22', '2026-11-22'), null);
  t.match(rangeProblem('2026-11-22', '2026-11-01'), 'after');
  t.match(rangeProblem('', '2026-11-22'), 'needed');
  t.equal(rangeProblem('2020-01-01', '2022-09-26'), null, 'a thousand days');
  t.match(rangeProblem('2020-01-01', '2022-09-27'), 'At most 1000');
});

test('the question is one that the ledger answers', async (t) => {
  const path = reportPath({ ...asked, key: 'team a&b', model: 'sim/text' }, 'csv');
  const url = new URL(path, 'http://admin');
  t.equal(url.pathname, '/usage');
  t.same(Object.fromEntries(url.searchParams), {
    by: 'day,key',
    from: '2026-11-16',
    to: '2026-11-22',
    key: 'team a&b',
    model: 'sim/text',
    format: 'csv',
  });
  checkNames(url.searchParams, ['from', 'to', 'by', 'key', 'model', 'format']);
  t.same(readGroupings(url.searchParams), ['day', 'key']);
  t.equal(readRange(url.searchParams, dayOnly).from.start, Date.parse('2026-11-16'));
  t.same(readGroupings(new URL(reportPath({ ...asked, by: [] }), 'http://admin').searchParams), []);
});

test('calls one by one are asked without groupings', async (t) => {
  t.equal(linesPath(asked, 'jsonl'), '/usage/lines?from=2026-11-16&to=2026-11-22&format=jsonl');
});

test('an export is named after its days', async (t) => {
  t.equal(exportName('usage', asked, 'csv'), 'usage-2026-11-16-to-2026-11-22.csv');
  t.equal(exportName('calls', { ...asked, from: asked.to }, 'jsonl'), 'calls-2026-11-22.jsonl');
});

test('days between two days, over the end of a month', async (t) => {
  t.same(daysBetween('2026-02-27', '2026-03-01'), ['2026-02-27', '2026-02-28', '2026-03-01']);
  t.same(daysBetween('2026-02-27', '2026-02-27'), ['2026-02-27']);
});
