import { test } from 'tap';
import { itemPage, readItemPage } from '../../../src/protocols/responses/by-id.js';

const items = ['a', 'b', 'c'].map((id) => ({ id, type: 'function_call', name: id }));
const page = (query: string) => JSON.parse(itemPage(items, readItemPage(query)));
const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);

test('items come newest first, unless the other order is asked for', async (t) => {
  t.strictSame(page(''), {
    object: 'list',
    data: items.toReversed(),
    first_id: 'c',
    last_id: 'a',
    has_more: false,
  });
  t.strictSame(idsOf(page('order=asc')), ['a', 'b', 'c']);
});

test('a page ends at its limit and the next begins behind its last item', async (t) => {
  const first = page('limit=2&order=asc');
  t.match(first, { first_id: 'a', last_id: 'b', has_more: true });
  t.match(page('limit=2&order=asc&after=b'), { first_id: 'c', last_id: 'c', has_more: false });
  t.match(page('after=a'), { data: [], first_id: null, last_id: null, has_more: false });
});

test('a page that cannot be is refused by name', async (t) => {
  for (const [query, param] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=2.5', 'limit'],
    ['order=up', 'order'],
    ['after=d', 'after'],
  ] as const)
    t.throws(() => page(query), { code: 'invalid_value', param });
});

test('messages are shown with their parts', async (t) => {
  const shown = JSON.parse(
    itemPage(
      [
        { id: 'u', role: 'user', content: 'hi' },
        { id: 'a', type: 'message', role: 'assistant', content: 'ho' },
        { id: 'd', type: 'message', role: 'developer', content: [], status: 'incomplete' },
      ],
      readItemPage('order=asc'),
    ),
  );
  const type = 'message';
  const status = 'completed';
  t.strictSame(shown.data, [
    { status, id: 'u', role: 'user', content: [{ type: 'input_text', text: 'hi' }], type },
    {
      status,
      id: 'a',
      type,
      role: 'assistant',
      content: [{ type: 'output_text', annotations: [], text: 'ho' }],
    },
    { status: 'incomplete', id: 'd', type, role: 'developer', content: [] },
  ]);
});
