import { test } from 'tap';
import { type Keep, type Recalled, writeHolder } from '../../../src/conversation/kept-turns.js';
import { messagesConversation, readKept } from '../../../src/protocols/messages/conversation.js';

const plenty = 1_000_000;
const rules = messagesConversation;
const tools = [{ name: 'look', input_schema: { type: 'object' } }];
const asked = { role: 'user', content: 'Wo ist "Ōsaka"?' };
const called = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] };
const seen = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'here' }] };
const begun = { model: 'm', max_tokens: 9, system: 'Be brief.', tools, messages: [asked] };
const bytesOf = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const continued = (id: string, more: object) =>
  bytesOf({ thread: { type: 'continue', previous_message_id: id }, model: 'm', max_tokens: 9, ...more });
const answer = (content: readonly object[], stop_reason = 'tool_use') =>
  bytesOf({ id: 'msg_x', type: 'message', role: 'assistant', model: 'm', content, stop_reason });

/** A store of one key. */
class Kept {
  readonly records = new Map<string, string>();

  recall(body: Buffer): Recalled | null {
    const recall = rules.recall(body, false);
    if (recall === null) return null;
    const found = recall.ids.map((id) => this.records.get(id) ?? null);
    const before = recall.before(found).ids.map((id) => this.records.get(id) ?? null);
    return recall.join(found, before, plenty);
  }

  /** A call that is answered: what it asks for in all. */
  turn(id: string, body: Buffer, end: Buffer): Record<string, unknown> {
    const recalled = this.recall(body);
    const keep = rules.keep({ body, recalled, newId: () => id, recordBytes: plenty, isPassed: false });
    for (const record of keep?.records(end, false) ?? []) this.records.set(record.id, record.value);
    return JSON.parse((recalled?.body ?? body).toString());
  }
}

test('each turn of a thread is the whole request, without replies that say nothing', async (t) => {
  const kept = new Kept();
  kept.turn('1', bytesOf({ ...begun, thread: { type: 'create' } }), answer(called.content));
  const second = kept.turn('2', continued('msg_1', { messages: [seen], stream: true }), answer([]));
  const thread = { type: 'create' };
  t.strictSame(second, { ...begun, thread, stream: true, messages: [asked, called, seen] });
  const third = kept.turn('3', continued('msg_2', { messages: [asked, asked] }), answer([]));
  t.strictSame(third, { ...begun, thread, messages: [asked, called, seen, asked, asked] });
  const fork = kept.turn('4', continued('msg_1', { messages: [asked], system: 'Be long.' }), answer([]));
  t.strictSame(fork, { ...begun, thread, system: 'Be long.', messages: [asked, called, asked] });
  const resumed = kept.turn('5', continued('msg_4', { messages: [] }), answer([]));
  t.strictSame(resumed, { ...begun, thread, system: 'Be long.', messages: [asked, called, asked] });
  const bare = kept.turn('6', continued('msg_1', {}), answer([]));
  t.strictSame(bare.messages, [asked, called]);
});

test('a turn that nobody can go on from is not kept', async (t) => {
  const kept = new Kept();
  const create = bytesOf({ ...begun, thread: { type: 'create' } });
  kept.turn('1', create, answer([], 'refusal'));
  kept.turn('2', bytesOf(begun), answer([]));
  kept.turn('3', create, bytesOf({ type: 'error' }));
  kept.turn('4', continued('msg_unknown', { messages: [seen] }), answer([]));
  t.equal(kept.records.size, 0);
});

test('a message that is not known is the vendor’s error', async (t) => {
  const kept = new Kept();
  kept.turn('1', bytesOf({ ...begun, thread: { type: 'create' } }), answer(called.content));
  kept.turn('2', continued('msg_1', { messages: [seen] }), answer([]));
  kept.records.delete('msg_1');
  for (const id of ['msg_2', 'msg_9', 'msg9"<', ''])
    t.match(kept.recall(continued(id, { messages: [seen] })), {
      body: null,
      holder: null,
      turn: null,
      unfound: { kind: 'thread_not_found', param: 'thread.previous_message_id' },
    });
  const hostile = kept.recall(continued('msg9"<', {}))?.unfound?.message ?? 'msg9';
  t.notMatch(hostile, 'msg9');
  const strange = { kind: 'thread_not_found', message: /^(?!.*msg 9)/s };
  t.throws(() => kept.recall(continued('msg 9', {})), strange, 'no upstream assigns such an id');
});

test('many turns are written anew with all that was said', async (t) => {
  const kept = new Kept();
  kept.turn('0', bytesOf({ ...begun, thread: { type: 'create' } }), answer(called.content));
  for (let turn = 1; turn <= 300; turn++)
    kept.turn(`${turn}`, continued(`msg_${turn - 1}`, { messages: [seen] }), answer([]));
  const last = readKept(kept.records.get('msg_300') ?? '');
  t.ok(last !== null && 'before' in last && last.before.length < 256);
  for (let turn = 0; turn < 250; turn++) kept.records.delete(`msg_${turn}`);
  const { messages, tools: kepTools } = kept.turn('301', continued('msg_300', { messages: [] }), answer([]));
  t.equal((messages as unknown[]).length, 302);
  t.strictSame(kepTools, tools);
  const recalled = kept.recall(continued('msg_301', { messages: [] }));
  const needed = last !== null && 'before' in last ? [...last.before, 'msg_300', 'msg_301'] : [];
  t.same(recalled?.turn?.needed, needed, 'these have to live as long as the turn that goes on from them');
});

test('what the turns of a long thread say of its settings is read once each', async (t) => {
  const kept = new Kept();
  const system = 'x'.repeat(20_000);
  kept.turn('0', bytesOf({ ...begun, system, thread: { type: 'create' } }), answer(called.content));
  for (let turn = 1; turn <= 200; turn++)
    kept.turn(`${turn}`, continued(`msg_${turn - 1}`, { tools, messages: [seen] }), answer([]));
  const bytes = [...kept.records.values()].reduce((sum, value) => sum + value.length, 0);
  const encoded = t.capture(Buffer, 'from', Buffer.from);
  kept.recall(continued('msg_200', { messages: [seen] }));
  const read = encoded().reduce((sum, { args: [text] }) => sum + String(text).length, 0);
  t.ok(read > bytes && read < 3 * bytes, `${read} of ${bytes}`);
});

const events = (...list: readonly object[]): Buffer =>
  Buffer.from(
    list
      .map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join(''),
  );
const started = events({ type: 'message_start', message: { id: 'msg_native' } });
const grown = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'so ' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '"it" is' } },
  { type: 'content_block_stop', index: 0 },
];
const ended = (stop_reason: string) =>
  events({ type: 'message_delta', delta: { stop_reason }, usage: {} }, { type: 'message_stop' });

function seenBy(keep: Keep | null, runs: readonly Buffer[]): readonly { id: string; value: string }[] {
  for (const run of runs.slice(0, -1)) keep?.see?.(run);
  return keep?.records(runs.at(-1) ?? Buffer.alloc(0), true) ?? [];
}

test('a stream is kept as the message that it brings, once it is whole', async (t) => {
  const body = bytesOf({ ...begun, thread: { type: 'create' } });
  const keep = () =>
    rules.keep({ body, recalled: null, newId: () => '7', recordBytes: plenty, isPassed: false });
  const [record] = seenBy(keep(), [started, events(...grown), ended('end_turn')]);
  t.equal(record?.id, 'msg_7');
  t.match(readKept(record?.value ?? ''), {
    reply: JSON.stringify({ role: 'assistant', content: [{ type: 'text', text: 'so "it" is' }] }),
    settings: JSON.stringify({ system: begun.system, tools }),
    messages: JSON.stringify(asked),
  });
  t.strictSame(seenBy(keep(), [started, events(...grown)]), [], 'cut');
  t.strictSame(seenBy(keep(), [started, events(...grown), ended('refusal')]), [], 'refused');
});

test('an answer that passes as it came is kept under the id that it has', async (t) => {
  const body = bytesOf({ ...begun, thread: { type: 'create' } });
  const keep = () =>
    rules.keep({
      body,
      recalled: null,
      newId: () => '7',
      recordBytes: 1_000_000,
      isPassed: true,
    });
  const [whole] = keep()?.records(answer(called.content), false) ?? [];
  t.match(whole, { id: 'msg_x', value: /"name":"look"/ });
  t.strictSame(keep()?.records(bytesOf({ id: 'no id', content: [] }), false), []);
  const each = keep();
  const runs = [started, events(...grown), ended('end_turn')].map((run) => {
    each?.see?.(run);
    return each?.records(run, true) ?? [];
  });
  t.strictSame(runs.slice(0, 2), [[], []]);
  t.equal(runs[2]?.[0]?.id, 'msg_native');
  const reply = { role: 'assistant', content: [{ type: 'text', text: 'so "it" is' }] };
  t.match(readKept(runs[2]?.[0]?.value ?? ''), { reply: JSON.stringify(reply) });
  t.ok((each?.gathered?.() ?? 0) > 10);
});

test('who holds a thread is kept under the id of its reply', async (t) => {
  const holder = { upstream: 'u', model: 'real', key: 'k' };
  const create = bytesOf({ ...begun, thread: { type: 'create' } });
  t.equal(rules.hold(bytesOf(begun), holder, false), null);
  t.strictSame(rules.hold(create, holder, false)?.keep?.records(answer([]), false), [
    { id: 'msg_x', value: writeHolder(holder, 'messages') },
  ]);
  const [record] = seenBy(rules.hold(create, holder, false)?.keep ?? null, [
    started,
    events(...grown),
    ended('end_turn'),
  ]);
  t.equal(record?.id, 'msg_native');
  const kept = new Kept();
  kept.records.set('msg_native', record?.value ?? '');
  t.match(kept.recall(continued('msg_native', { messages: [seen] })), {
    body: null,
    holder,
    unfound: { kind: 'thread_not_found' },
    turn: null,
  });
});
