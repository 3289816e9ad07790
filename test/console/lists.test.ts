import { test } from 'tap';
import { filterRequests, toneOf } from '../../src/console/requests/filter.js';
import { nextOrder, sorted } from '../../src/console/sort.js';
import { failuresOf, illFirst } from '../../src/console/targets/target.js';
import { requestWith, targetWith } from './page-views.js';

const idsOf = (requests: readonly { readonly id: string }[]): string[] => requests.map(({ id }) => id);

test('rows sort by numbers and words, with what is not known last either way', async (t) => {
  const rows = [3, null, 10, 1];
  t.same(
    sorted(rows, (row) => row, false),
    [1, 3, 10, null],
  );
  t.same(
    sorted(rows, (row) => row, true),
    [10, 3, 1, null],
  );
  t.same(
    sorted(['b10', 'b9', 'A1'], (row) => row, false),
    ['A1', 'b9', 'b10'],
  );
  t.same(rows, [3, null, 10, 1], 'what was given stays as it was');
});

test('equal rows keep their order', async (t) => {
  const rows = ['first', 'second', 'third'];
  t.same(
    sorted(rows, () => 0, true),
    rows,
  );
});

test('a second click on a head turns the order round', async (t) => {
  const byName = { key: 'name', descending: false };
  t.same(nextOrder(byName, 'name', false), { key: 'name', descending: true });
  t.same(nextOrder(byName, 'requests', true), { key: 'requests', descending: true });
  t.same(nextOrder({ key: 'requests', descending: true }, 'name', false), byName);
});

test('ill targets come first, the worst on top', async (t) => {
  const targets = [
    targetWith({ name: 'well', attempts: 1 }),
    targetWith({ name: 'busy', attempts: 9 }),
    targetWith({ name: 'cooling', state: 'cooling' }),
    targetWith({ name: 'open', state: 'open' }),
    targetWith({ name: 'half', state: 'half-open' }),
  ];
  t.same(
    illFirst(targets).map(({ name }) => name),
    ['open', 'half', 'cooling', 'busy', 'well'],
  );
});

test('failures are those of every result', async (t) => {
  t.equal(failuresOf(targetWith({})), 0);
  t.equal(failuresOf(targetWith({ failures: { connect: 2, timeout: 3 } })), 5);
});

test('requests are found by words of their id, model, key and path, in any case', async (t) => {
  const requests = [
    requestWith({ id: 'a', model: 'GPT-X', key: 'team' }),
    requestWith({ id: 'b', path: '/v1/embeddings', model: null, key: null }),
  ];
  const found = (text: string) => idsOf(filterRequests(requests, { text, errorsOnly: false }));
  t.same(found(''), ['a', 'b']);
  t.same(found(' gpt  TEAM '), ['a']);
  t.same(found('embeddings'), ['b']);
  t.same(found('gpt embeddings'), []);
});

test('only errors are refusals and failures, not a caller who left', async (t) => {
  const requests = [
    requestWith({ id: 'well' }),
    requestWith({ id: 'refused', status: 429 }),
    requestWith({ id: 'failed', status: 502 }),
    requestWith({ id: 'cut', status: 200, outcome: 'upstream_error' }),
    requestWith({ id: 'broken', status: 200, outcome: 'refused' }),
    requestWith({ id: 'left', status: 200, outcome: 'client_gone' }),
  ];
  t.same(idsOf(filterRequests(requests, { text: '', errorsOnly: true })), [
    'refused',
    'failed',
    'cut',
    'broken',
  ]);
  t.same(requests.map(toneOf), ['good', 'warn', 'bad', 'bad', 'bad', 'idle']);
});
