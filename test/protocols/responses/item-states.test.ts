import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import { plainSource } from '../../conversation/plain.js';

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

/** What the events of an upstream are decoded to, from the first that says something to the last that does. */
function decodeAll(...events: Event[]): StreamEvent[] {
  const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  for (const event of events) decoder.decode(event.type, JSON.stringify(event), out);
  return out.slice(1, -2);
}

const text = {
  type: 'response.output_text.delta',
  item_id: 'msg_1',
  output_index: 0,
  content_index: 0,
  delta: 'hi',
};
const message = (id: string, words: string) => ({
  type: 'message',
  id,
  content: [{ type: 'output_text', text: words }],
});
const call = (id: string, more: object = {}) => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: `call_${id}`,
  name: 'f',
  arguments: '{"a":1}',
  ...more,
});
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ text: 'hm' }], encrypted_content: 'gAAA' };
const completed = (...output: object[]) => ({ type: 'response.completed', response: { output } });
const added = (item: object, index: number) => ({
  type: 'response.output_item.added',
  output_index: index,
  item,
});
const done = (item: object, index: number) => ({
  type: 'response.output_item.done',
  output_index: index,
  item,
});
const kinds = (events: readonly StreamEvent[]) => events.map(({ kind }) => kind);

test('an item that only the last event has is not lost', async (t) => {
  const events = decodeAll(
    text,
    completed(message('msg_1', 'hi'), reasoning, call('1'), message('msg_2', 'bye')),
  );
  t.match(events, [
    { kind: 'text', text: 'hi' },
    { kind: 'reasoning', text: 'hm' },
    { kind: 'signature' },
    { kind: 'callStart', id: 'call_1', name: 'f' },
    { kind: 'callArguments', text: '{"a":1}' },
    { kind: 'callEnd' },
    { kind: 'text', text: 'bye' },
  ]);
});

test('an item that has come is not told again, however the last event numbers and names it', async (t) => {
  const { item_id: _id, output_index: _index, ...nowhere } = text;
  for (const delta of [text, nowhere, { ...nowhere, item_id: 'msg_1' }, { ...text, output_index: 3 }])
    for (const output of [
      [message('msg_1', 'hi')],
      [message('msg_9', 'hi')],
      [reasoning, message('msg_9', 'hi')],
      [{ type: 'web_search_call', id: 'ws_1' }, message('msg_1', 'hi')],
    ]) {
      const told = decodeAll(delta, completed(...output)).filter(({ kind }) => kind === 'text');
      t.equal(told.length, 1, JSON.stringify([delta, output]));
    }
  const called = [added(call('1', { arguments: '' }), 0), done(call('1'), 0)];
  t.equal(
    decodeAll(...called, completed(reasoning, call('1'))).filter((e) => e.kind === 'callStart').length,
    1,
  );
  t.equal(decodeAll(...called, completed(call('other'))).filter((e) => e.kind === 'callStart').length, 1);
});

test('a call begins when its name is known', async (t) => {
  const nameless = call('1', { name: undefined, arguments: '' });
  const input = (delta: string) => ({
    type: 'response.function_call_arguments.delta',
    output_index: 0,
    delta,
  });
  const expected = [
    { kind: 'callStart', call: 0, id: 'call_1', name: 'f' },
    { kind: 'callArguments', text: '{"a":1}' },
    { kind: 'callEnd' },
  ];
  for (const last of [done(call('1'), 0), done(nameless, 0)])
    t.match(decodeAll(added(nameless, 0), input('{"a"'), input(':1}'), last, completed(call('1'))), expected);
  t.match(decodeAll(added(nameless, 0), done(call('1'), 0), completed()), expected);
  const never = decodeAll(added(nameless, 0), done(nameless, 0), completed());
  t.match(never, [{ kind: 'callStart', name: '' }, { text: '{}' }, { kind: 'callEnd' }]);
});

test('arguments without end and without a name are an error', async (t) => {
  const decoder = responsesCodec.createDecoder({ ...plainSource, model: 'up' });
  const out: StreamEvent[] = [];
  const piece = {
    type: 'response.function_call_arguments.delta',
    output_index: 0,
    delta: 'x'.repeat(1 << 20),
  };
  for (let count = 0; count < 9; count++) decoder.decode(null, JSON.stringify(piece), out);
  t.same(kinds(out), ['start', 'error']);
});

test('the place of a source counts from the beginning of the answer', async (t) => {
  const place = (index: number, part: number) => ({ output_index: index, content_index: part });
  const textDone = (index: number, part: number, words: string) => ({
    type: 'response.output_text.done',
    ...place(index, part),
    text: words,
  });
  const source = { type: 'url_citation', start_index: 0, end_index: 1, url: 'https://a', title: '' };
  const cited = (index: number, part: number) => ({
    type: 'response.output_text.annotation.added',
    ...place(index, part),
    annotation: source,
  });
  const delta = (index: number, part: number) => ({ ...text, ...place(index, part), delta: 'x' });
  const events = decodeAll(
    delta(0, 0),
    cited(0, 0),
    textDone(0, 0, 'x and more'),
    delta(0, 1),
    textDone(0, 1, 'xy'),
    cited(0, 1),
    done(call('1'), 1),
    delta(2, 0),
    done({ ...message('m', 'z'), content: [{ type: 'output_text', text: 'xz', annotations: [source] }] }, 2),
    completed(),
  );
  const starts = events.flatMap((event) => (event.kind === 'citation' ? [event.citation.start] : []));
  t.same(starts, [0, 10, 12]);
});

test('an upstream that numbers its items and names them by their ids elsewhere tells each text once', async (t) => {
  const { output_index: _number, ...named } = text;
  const told = decodeAll(
    added(message('msg_1', ''), 0),
    named,
    done(message('msg_1', 'hi'), 0),
    completed(message('msg_1', 'hi')),
  );
  t.same(
    told.filter(({ kind }) => kind === 'text').map((event) => ('text' in event ? event.text : '')),
    ['hi'],
  );
});
