import { test } from 'tap';
import { type IdentifiedTurn, PageOfItems, readItemPage } from '../../../src/protocols/responses/by-id.js';

function turnOf(
  id: string,
  { items, output = [], before = [] }: { items: object[]; output?: object[]; before?: string[] },
): IdentifiedTurn {
  const listed = JSON.stringify(items).slice(1, -1);
  return { id, kept: { bytes: 9, before, items: listed, response: JSON.stringify({ output }) } };
}

/** Pages of a response. @param earlier the turns before it */
function pagesOf(last: IdentifiedTurn, earlier: readonly IdentifiedTurn[] = []) {
  return (query: string) => {
    const gathered = new PageOfItems(readItemPage(query), last);
    const read: string[] = [];
    for (let ids = gathered.needed; ids.length > 0; ids = gathered.needed)
      for (const id of ids) {
        read.push(id);
        gathered.add(earlier.find((turn) => turn.id === id) as IdentifiedTurn);
      }
    return { ...JSON.parse(gathered.text()), read };
  };
}

const items = ['a', 'b', 'c'].map((id) => ({ id, type: 'function_call', name: id }));
const page = pagesOf(turnOf('resp_1', { items }));
const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);

test('items come newest first, unless the other order is asked for', async (t) => {
  t.strictSame(page(''), {
    object: 'list',
    data: items.toReversed(),
    first_id: 'c',
    last_id: 'a',
    has_more: false,
    read: [],
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
  const items = [
    { id: 'u', role: 'user', content: 'hi' },
    { id: 'a', type: 'message', role: 'assistant', content: 'ho' },
    { id: 'd', type: 'message', role: 'developer', content: [], status: 'incomplete' },
  ];
  const shown = pagesOf(turnOf('resp_1', { items }))('order=asc');
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

const made = (number: number): string => `resp_${String(number).repeat(8)}`;
const chain = Array.from({ length: 9 }, (_, at) =>
  turnOf(made(at), {
    items: [{ role: 'user', content: `q${at}` }],
    output: [{ type: 'message', id: `msg_${String(at).repeat(8)}`, role: 'assistant', content: `a${at}` }],
  }),
);
const pageOfChain = pagesOf(
  turnOf(made(9), { items: [{ role: 'user', content: 'q9' }], before: chain.map(({ id }) => id) }),
  chain,
);

test('a page reads the turns that it has items of, and no others', (t) => {
  const last = pageOfChain('limit=1');
  t.strictSame([idsOf(last), last.has_more, last.read], [['msg_99999999_i0'], true, [made(8)]]);
  const next = pageOfChain('limit=2&after=msg_44444444');
  t.strictSame(idsOf(next), ['msg_44444444_i0', 'msg_33333333']);
  t.strictSame(next.read, [made(4), made(3)]);
  const first = pageOfChain('limit=3&order=asc');
  t.strictSame(idsOf(first), ['msg_00000000_i0', 'msg_00000000', 'msg_11111111_i0']);
  t.strictSame(first.read, [made(0), made(1)]);
  t.throws(() => pageOfChain('after=msg_44444444_7'), { code: 'invalid_value', param: 'after' });
  t.end();
});

test('pages of a chain of turns join to all of its items', (t) => {
  for (const order of ['asc', 'desc'])
    for (const limit of [1, 2, 3, 7, 19, 20]) {
      const all: string[] = [];
      let more = true;
      while (more) {
        const shown = pageOfChain(`limit=${limit}&order=${order}&after=${all.at(-1) ?? ''}`);
        all.push(...idsOf(shown));
        more = shown.has_more;
      }
      t.equal(all.length, 19);
      t.equal(new Set(all).size, 19);
      t.equal(all.at(order === 'asc' ? -1 : 0), 'msg_99999999_i0');
    }
  t.end();
});
