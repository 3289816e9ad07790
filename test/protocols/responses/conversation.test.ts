import { test } from 'tap';
import { type Keep, type Recalled, writeHolder } from '../../../src/conversation/kept-turns.js';
import { responsesConversation as rules } from '../../../src/protocols/responses/conversation.js';
import { readKept, writeKept } from '../../../src/protocols/responses/kept.js';
import type { JsonObject } from '../../../src/wire/json.js';

const plenty = 1_000_000;
const bytesOf = (body: object): Buffer => Buffer.from(JSON.stringify(body));
const userItem = (content: string) => ({ type: 'message', role: 'user', content });
const id = (number: number): string => number.toString(16).padStart(26, '0');

function responseOf(number: number, more: object = {}): JsonObject {
  const item = { id: `msg_${id(number)}`, type: 'message', role: 'assistant', content: `said ${number}` };
  return { id: `resp_${id(number)}`, object: 'response', output: [item], store: true, ...more };
}

/** Goes on from what is in `records`, as the flow would. */
function goOn(body: object, records: ReadonlyMap<string, string>, recordBytes = plenty): Recalled {
  const recall = rules.recall(bytesOf(body), true);
  if (recall === null) throw new Error('the body names nothing');
  const find = (ids: readonly string[]) => ids.map((each) => records.get(each) ?? null);
  const found = find(recall.ids);
  return recall.join(found, find(recall.before(found).ids), recordBytes);
}

function keepOf(body: object, recalled: Recalled | null, number: number): Keep {
  const bytes = recalled?.body ?? bytesOf(body);
  const keep = rules.keep({
    body: bytes,
    recalled,
    newId: () => id(number),
    recordBytes: plenty,
    isPassed: false,
  });
  if (keep === null) throw new Error('the turn is not kept');
  return keep;
}

/** Has turns made one after the other, each going on from the one before. */
function talk(turns: number): Map<string, string> {
  const records = new Map<string, string>();
  for (let number = 0; number < turns; number += 1) {
    const previous = number === 0 ? {} : { previous_response_id: `resp_${id(number - 1)}` };
    const body = { model: 'm', input: `asked ${number}`, ...previous };
    const recalled = number === 0 ? null : goOn(body, records);
    const [record] = keepOf(body, recalled, number).records(bytesOf(responseOf(number)), false);
    if (record === undefined) throw new Error('there is no record');
    records.set(record.id, record.value);
  }
  return records;
}

const inputOf = ({ body }: Recalled): JsonObject[] =>
  (JSON.parse(body?.toString() ?? '{}') as { input: JsonObject[] }).input;

test('a body that names nothing is left alone', (t) => {
  t.equal(rules.recall(bytesOf({ model: 'm', input: 'hi' }), true), null);
  t.equal(rules.recall(bytesOf({ model: 'm', input: [userItem('"item_reference"')] }), true), null);
  t.equal(rules.recall(bytesOf({ model: 'm', input: 'hi', previous_response_id: null }), true), null);
  t.end();
});

test('a record is read as it was written', (t) => {
  const kept = {
    before: ['resp_1', 'resp_2'],
    items: '{"a":1.0},{"b":"]"}',
    response: '{"id":"resp_3","output":[{"id":"x"}],"n":1e400}',
  };
  const { before, items: own, response } = kept;
  const written = writeKept({ before, bytesBefore: 0, own, all: null, needed: [] }, response);
  t.same(readKept(written), { ...kept, bytes: own.length + response.length });
  const holder = { upstream: 'u', model: 'm', key: null };
  t.same(readKept(writeHolder(holder, 'responses')), holder);
  for (const value of ['', '[]', '{"v":2,"items":[]}', '{"v":1}', '{"v":1,"held":{}}'])
    t.equal(readKept(value), null);
  t.end();
});

test('each turn is kept by itself, and a conversation is all of them in their order', (t) => {
  const records = talk(3);
  const kept = readKept(records.get(`resp_${id(2)}`) ?? '');
  t.match(kept, { before: [`resp_${id(0)}`, `resp_${id(1)}`] });
  t.match(kept, { items: JSON.stringify(userItem('asked 2')) });
  const recalled = goOn(
    { model: 'm', input: 'now', temperature: 1, previous_response_id: `resp_${id(2)}` },
    records,
  );
  t.same(
    inputOf(recalled).map(({ content }) => content),
    ['asked 0', 'said 0', 'asked 1', 'said 1', 'asked 2', 'said 2', 'now'],
  );
  t.same(Object.keys(JSON.parse(recalled.body?.toString() ?? '') as object).sort(), [
    'input',
    'model',
    'temperature',
  ]);
  t.match(recalled, { holder: null, unfound: null, echo: { previous_response_id: `resp_${id(2)}` } });
  t.end();
});

test('a conversation of which a turn is gone is not found', (t) => {
  const records = talk(3);
  records.delete(`resp_${id(1)}`);
  const recalled = goOn({ model: 'm', input: 'now', previous_response_id: `resp_${id(2)}` }, records);
  t.match(recalled, { body: null, turn: null, unfound: { kind: 'previous_response_not_found' } });
  t.end();
});

test('a conversation of many turns is found by few records', (t) => {
  const records = talk(300);
  const befores = [...records.values()].map((value) => {
    const kept = readKept(value);
    return kept === null || 'upstream' in kept ? -1 : kept.before.length;
  });
  t.equal(Math.max(...befores), 255);
  t.equal(befores[256], 0, 'the whole of it is in one record then');
  const recalled = goOn({ model: 'm', input: 'now', previous_response_id: `resp_${id(299)}` }, records);
  t.equal(inputOf(recalled).length, 601);
  t.end();
});

test('a turn says which records have to live as long as its own', (t) => {
  const records = talk(2);
  const body = { model: 'm', input: 'now', previous_response_id: `resp_${id(1)}` };
  t.same(keepOf(body, goOn(body, records), 2).needed, [`resp_${id(0)}`, `resp_${id(1)}`]);
  t.same(keepOf({ input: 'first' }, null, 3).needed, []);
  t.end();
});

/** What a client sends that has its conversation by heart: its own items, and references to those of the answers. */
function byReferences(turns: number): JsonObject[] {
  const said = Array.from({ length: turns }, (_, number) => [
    userItem(`asked ${number}`),
    { type: 'item_reference', id: `msg_${id(number)}` },
  ]);
  return [...said.flat(), userItem(`asked ${turns}`)];
}

/** The same conversation as `talk` has. */
function talkByReferences(turns: number): Map<string, string> {
  const records = new Map<string, string>();
  for (let number = 0; number < turns; number += 1) {
    const body = { model: 'm', input: byReferences(number) };
    const keep = keepOf(body, number === 0 ? null : goOn(body, records), number);
    for (const { id, value } of keep.records(bytesOf(responseOf(number)), false)) records.set(id, value);
  }
  return records;
}

test('the phase of messages is kept as it came, for a target that takes it', (t) => {
  const phased = { type: 'message', role: 'assistant', content: 'I look.', phase: 'commentary' };
  const answered = { ...phased, id: `msg_${id(0)}`, content: 'Done.', phase: 'final_answer' };
  const body = { model: 'm', input: [userItem('go'), phased] };
  const end = bytesOf(responseOf(0, { output: [answered] }));
  const records = new Map(
    keepOf(body, null, 0)
      .records(end, false)
      .map((each) => [each.id, each.value]),
  );
  const chained = goOn({ input: [userItem('on')], previous_response_id: `resp_${id(0)}` }, records);
  const said = [userItem('go'), phased, answered, userItem('on')];
  t.equal(chained.body?.toString(), JSON.stringify({ input: said }));
  const reference = { type: 'item_reference', id: answered.id };
  const referring = goOn({ input: [userItem('go'), phased, reference, userItem('on')] }, records);
  t.equal(referring.body?.toString(), JSON.stringify({ input: said }));
  t.end();
});

test('what references repeat of a kept conversation is not kept again', (t) => {
  const records = talkByReferences(3);
  t.same(records, talk(3), 'the records are those of a conversation that goes on by ids');
  const body = { model: 'm', input: byReferences(3) };
  const recalled = goOn(body, records);
  t.equal(inputOf(recalled).length, 7);
  t.match(recalled.turn, { own: JSON.stringify(userItem('asked 3')), all: null });
  const ids = [0, 1, 2].map((number) => `resp_${id(number)}`);
  t.same(recalled.turn?.before, ids);
  t.same(keepOf(body, recalled, 3).needed, ids, 'but lives as long');
  t.end();
});

test('a conversation by references stays in few and small records however long it is', (t) => {
  const records = talkByReferences(300);
  const kept = [...records.values()].map((value) => readKept(value)).filter((each) => each !== null);
  const befores = kept.map((each) => ('before' in each ? each.before.length : -1));
  t.equal(Math.max(...befores), 255);
  t.ok([...records.values()].filter((value) => value.length > 20_000).length <= 2);
  const recalled = goOn({ input: byReferences(300) }, records);
  t.equal(inputOf(recalled).length, 601);
  t.equal(recalled.turn?.needed.length, 300, 'what is referred to by its own id is needed under it');
  t.end();
});

test('a conversation that references repeat otherwise than it was is kept whole', (t) => {
  const records = talkByReferences(3);
  const [first, ...others] = byReferences(3);
  const cases = [
    { input: [userItem('asked something else'), ...others], needed: 3 },
    { input: others, needed: 3 },
    { input: [first, ...others.slice(2)], needed: 2 },
    { input: [...others.slice(-2), { type: 'item_reference', id: `msg_${id(0)}` }], needed: 2 },
  ];
  for (const { input, needed } of cases) {
    const { turn } = goOn({ input }, records);
    t.match(turn, { before: [], bytesBefore: 0, all: null });
    t.equal(turn?.needed.length, needed);
    t.equal((JSON.parse(`[${turn?.own}]`) as unknown[]).length, input.length);
  }
  t.end();
});

test('a conversation that is too large for one record goes on in many, up to a bound', (t) => {
  const records = talk(256);
  const body = { model: 'm', input: 'now', previous_response_id: `resp_${id(255)}` };
  const all = goOn(body, records).turn?.all ?? '';
  t.ok(all.length > 256 * 50);
  t.equal(goOn(body, records, all.length).turn?.all, null, 'its reply would have no room');
  t.equal(goOn(body, records, all.length).turn?.before.length, 256);
  t.equal(goOn(body, records, all.length * 2).turn?.all, all);
  const value = records.get(`resp_${id(255)}`) ?? '';
  const last = readKept(value);
  if (last === null || 'upstream' in last) throw new Error('there is no turn');
  const chain = (length: number): Recalled => {
    const before = Array.from({ length }, () => `resp_${id(0)}`);
    const turn = { before, bytesBefore: 0, own: last.items, all: null, needed: [] };
    const long = new Map(records).set(`resp_${id(255)}`, writeKept(turn, last.response));
    return goOn(body, long, 1000);
  };
  t.equal(chain(4095).turn?.before.length, 4096);
  t.match(chain(4096), { unfound: null, turn: null }, 'it goes on, and is not kept');
  t.end();
});

test('a turn whose own part is too large is not kept from the start', (t) => {
  const body = bytesOf({ input: 'x'.repeat(1000) });
  const keep = (recordBytes: number) =>
    rules.keep({ body, recalled: null, newId: () => id(0), recordBytes, isPassed: false });
  t.equal(keep(1000), null);
  t.not(keep(2000), null);
  t.end();
});

test('a record is asked for once, however many items of it are referred to', (t) => {
  const records = talk(1);
  const own = { type: 'item_reference', id: `msg_${id(0)}` };
  const asked = { type: 'item_reference', id: `msg_${id(0)}_i0` };
  const input = [own, asked, own, asked];
  t.same(rules.recall(bytesOf({ input }), true)?.ids, [`resp_${id(0)}`, own.id, asked.id]);
  t.match(inputOf(goOn({ input: [own, asked] }, records)), [{ content: 'said 0' }, { content: 'asked 0' }]);
  const many = (length: number) =>
    bytesOf({ input: Array.from({ length }, (_, index) => ({ ...own, id: `msg_${id(index)}` })) });
  t.ok(rules.recall(many(4096), true));
  t.throws(() => rules.recall(many(4097), true), /more than 4096 items/);
  t.end();
});

test('an item that is referred to twice is refused, by whichever of its names', (t) => {
  const records = talk(2);
  const going = (...ids: string[]) => {
    const input = ids.map((each) => ({ type: 'item_reference', id: each }));
    return () => goOn({ model: 'm', input }, records);
  };
  const [answered, asked] = [`msg_${id(0)}`, `msg_${id(0)}_i0`];
  const twice = { kind: 'invalid_value', param: 'input', message: /^Duplicate item found with id/ };
  t.throws(going(answered, asked, answered), twice);
  // 8 MB that were kept, and 4,096 names of them in a body of 200 KB, would be 32 GB.
  t.throws(going(asked, `fc_${id(0)}_i0`), twice);
  t.throws(going(asked, `msg_${id(0)}_i00`), twice);
  const input = inputOf(going(asked, answered, `msg_${id(1)}_i0`, `msg_${id(1)}`)());
  t.equal(input.length, 4, 'items of several turns are not the same');
  t.end();
});

test('a search of the web that an answer tells of is found by its own id, and by no other', (t) => {
  const at = id(0);
  const search = { id: `ws_gw1_${at}_0`, type: 'web_search_call', status: 'completed' };
  const [record] = keepOf({ input: 'a' }, null, 0).records(
    bytesOf(responseOf(0, { output: [search] })),
    false,
  );
  const records = new Map([[record?.id ?? '', record?.value ?? '']]);
  const referring = (named: string) => ({ input: [{ type: 'item_reference', id: named }] });
  t.same(inputOf(goOn(referring(search.id), records)), [search]);
  for (const other of [`ws_gw1_${at}`, `ws_gw1_${at}_i0`, `ws_gw1_${at}_0_1`, `ws_gw1_gw1_${at}_0`])
    t.notOk(rules.recall(bytesOf(referring(other)), true)?.ids.includes(`resp_${at}`), other);
  t.end();
});

test('references are replaced where they stand, and one that nobody knows stays for an upstream', (t) => {
  const records = talk(2);
  const input = [
    userItem('one'),
    { type: 'item_reference', id: `msg_${id(1)}` },
    { type: 'item_reference', id: 'msg_else' },
    { type: 'item_reference', id: `msg_${id(0)}_i0` },
  ];
  const recalled = goOn({ model: 'm', input }, records);
  t.match(inputOf(recalled), [
    { content: 'one' },
    { content: 'said 1' },
    { type: 'item_reference', id: 'msg_else' },
    { content: 'asked 0' },
  ]);
  t.match(recalled, { unfound: { kind: 'item_not_found' }, holder: null, turn: null, input: null });
  records.set('msg_else', writeHolder({ upstream: 'u', model: 'm', key: 'k' }, 'responses'));
  t.match(goOn({ model: 'm', input }, records), { holder: { upstream: 'u', model: 'm', key: 'k' } });
  t.end();
});

test('a response that an upstream holds keeps its name in the body', (t) => {
  const records = talk(1);
  records.set('resp_held', writeHolder({ upstream: 'u', model: 'm', key: null }, 'responses'));
  const plain = goOn({ model: 'm', input: 'x', previous_response_id: 'resp_held' }, records);
  t.match(plain, { body: null, holder: { upstream: 'u' }, turn: null });
  const input = [{ type: 'item_reference', id: `msg_${id(0)}` }];
  const mixed = goOn({ model: 'm', input, previous_response_id: 'resp_held' }, records);
  t.match(JSON.parse(mixed.body?.toString() ?? ''), {
    previous_response_id: 'resp_held',
    input: [{ content: 'said 0' }],
  });
  t.end();
});

test('what is not to be stored is not kept', (t) => {
  t.equal(
    rules.keep({
      body: bytesOf({ store: false }),
      recalled: null,
      newId: () => id(0),
      recordBytes: plenty,
      isPassed: false,
    }),
    null,
  );
  t.equal(rules.hold(bytesOf({ store: false }), { upstream: 'u', model: 'm', key: null }, false), null);
  const input = [userItem('x'), { type: 'compaction_trigger' }];
  const compaction = {
    body: bytesOf({ input }),
    recalled: null,
    newId: () => id(0),
    now: 0,
    recordBytes: 1000,
    isPassed: false,
  };
  t.equal(rules.keep(compaction), null);
  t.equal(keepOf({ input: [userItem('"compaction_trigger"')] }, null, 0).isAsked, false);
  t.equal(keepOf({ input: 'x' }, null, 0).isAsked, false);
  t.equal(keepOf({ input: 'x', store: true }, null, 0).isAsked, true);
  t.end();
});

test('the last event of a stream is kept, and can say that it is not', (t) => {
  const keep = keepOf({ input: 'x' }, null, 0);
  const response = responseOf(0, { metadata: { a: '\nevent: x\ndata: "response":' } });
  const done = 'event: response.output_item.done\ndata: {"type":"response.output_item.done"}\n\n';
  const event = (type: string) =>
    Buffer.from(`${done}event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 4, response })}\n\n`);
  for (const type of ['response.completed', 'response.incomplete']) {
    const [record] = keep.records(event(type), true);
    t.match(readKept(record?.value ?? ''), { response: JSON.stringify(response) });
    const unkept = keep.unkept(event(type), true).toString();
    t.ok(unkept.startsWith(done) && unkept.endsWith('}\n\n'));
    t.same(JSON.parse(unkept.slice(unkept.lastIndexOf('\ndata: ') + 7)), {
      type,
      sequence_number: 4,
      response: { ...response, store: false },
    });
  }
  t.same(keep.records(event('response.failed'), true), []);
  t.end();
});

test('the ids of an upstream’s answer are read in whatever way it writes', (t) => {
  const holder = { upstream: 'u', model: 'm', key: null };
  const keep = rules.hold(bytesOf({ input: 'x' }), holder, false)?.keep ?? null;
  const response = { id: 'resp_x', output: [{ id: 'msg_x' }, { type: 'odd' }, { id: 'bad id' }, 5] };
  const texts = [
    `data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`,
    `event: response.completed\r\ndata:${JSON.stringify({ response, type: 'response.completed' })}\r\n\r\n`,
    `event: response.incomplete\ndata: ${JSON.stringify({ type: 'response.incomplete', response }, null, 1).replaceAll('\n', '\ndata: ')}\n\ndata: [DONE]\n\n`,
  ];
  for (const text of texts) {
    const ids = keep?.records(Buffer.from(text), true).map((record) => record.id);
    t.same(ids, ['resp_x', 'msg_x'], text);
  }
  t.same(keep?.records(bytesOf(response), false)[0], {
    id: 'resp_x',
    value: writeHolder(holder, 'responses'),
  });
  for (const text of [
    '',
    'data: [DONE]\n\n',
    'data: {"type":"response.failed","response":{"id":"resp_x"}}\n\n',
  ])
    t.same(keep?.records(Buffer.from(text), true), []);
  t.end();
});
