import { test } from 'tap';
import { noParts, type Usage } from '../../../src/conversation/usage.js';
import { ServerEvent } from '../../../src/protocols/realtime/event-type.js';
import { OpenUsage } from '../../../src/protocols/realtime/usage.js';

const bytes = (event: object): Buffer => Buffer.from(JSON.stringify(event));
const eventOf = (value: object) => new ServerEvent(bytes(value));
const pcm = { audio: { output: { format: { type: 'audio/pcm', rate: 24_000 } } } };
const sound = (length: number) =>
  bytes({ type: 'response.output_audio.delta', delta: Buffer.alloc(length).toString('base64') });
const text = (delta: unknown, type = 'response.output_text.delta') =>
  bytes({ type, delta, obfuscation: 'x'.repeat(99) });
const outputOf = (output: number, audioOutput = 0): Usage => ({
  input: 0,
  output,
  cached: 0,
  cacheWritten: 0,
  reasoning: 0,
  ...(audioOutput === 0 ? {} : { parts: { ...noParts, audioOutput } }),
});

/** A response that has begun. */
function begin(response: unknown = pcm): OpenUsage {
  const open = new OpenUsage();
  open.note(eventOf({ type: 'response.created', response }), null, false);
  return open;
}

test('of a response, text counts by its script and sound by its seconds', (t) => {
  const open = begin();
  t.equal(open.shown, null);
  open.noteDelta(text('abcd "ef'));
  open.noteDelta(text('東京', 'response.output_audio_transcript.delta'));
  open.noteDelta(text('{"a":1}\\', 'response.function_call_arguments.delta'));
  t.strictSame(open.shown, outputOf(6));
  open.noteDelta(sound(48_000));
  t.strictSame(open.shown, outputOf(26, 20));
  for (const nothing of [text(5), text(null), bytes({ type: 'response.output_text.delta' }), text('')])
    open.noteDelta(nothing);
  for (const other of ['response.output_text.done', 'x.delta']) open.noteDelta(text('abcd', other));
  t.strictSame(open.shown, outputOf(26, 20));
  t.end();
});

test('what was shown is nothing more once a response is done, and nothing counts outside of one', (t) => {
  const open = begin();
  open.noteDelta(text('abcd'));
  t.equal(open.note(eventOf({ type: 'response.done' }), outputOf(3), false), null);
  open.noteDelta(text('abcd'));
  t.equal(open.shown, null);
  t.notOk(open.isOpen);
  t.end();
});

test('a response that ends without telling what it has used leaves what was shown of it', (t) => {
  const open = begin();
  open.noteDelta(text('abcd'));
  open.noteDelta(sound(48_000));
  t.strictSame(open.note(eventOf({ type: 'response.done' }), null, false), outputOf(21, 20));
  t.equal(open.shown, null);
  t.equal(open.note(eventOf({ type: 'response.done' }), null, false), null);
  t.end();
});

test('of two responses at once, what one of them tells is not counted again', (t) => {
  const open = begin();
  open.note(eventOf({ type: 'response.created', response: pcm }), null, false);
  open.noteDelta(text('abcd'.repeat(30)));
  open.noteDelta(sound(96_000));
  open.note(eventOf({ type: 'response.done' }), outputOf(40, 20), false);
  t.strictSame(open.shown, outputOf(30, 20));
  open.note(eventOf({ type: 'response.done' }), outputOf(1000, 500), false);
  t.equal(open.shown, null);
  t.end();
});

test('a response that is told to have ended twice is known, and one that begins by the same id is another', (t) => {
  const open = new OpenUsage();
  const event = (type: string, id: unknown) => eventOf({ type, response: { id, status: 'completed' } });
  const done = (id: unknown) => open.tellsAgain(event('response.done', id));
  for (const id of ['resp_1', 'resp_2']) open.note(event('response.created', id), null, false);
  t.strictSame(['resp_1', 'resp_1', 'resp_2', 'resp_1'].map(done), [false, true, false, true]);
  open.note(event('response.created', 'resp_1'), null, false);
  t.strictSame(['resp_1', 'resp_1'].map(done), [false, true]);
  t.notOk(open.tellsAgain(event('response.created', 'resp_1')), 'only an end is told again');
  t.end();
});

test('a response that was asked for and is told only to have ended is no longer under way', (t) => {
  const open = new OpenUsage();
  open.ask(null);
  open.ask(null);
  const done = eventOf({ type: 'response.done', response: { id: 'resp_1' } });
  const counts = [done, done, done].map((event) => {
    open.note(event, outputOf(3), false);
    return open.inFlight;
  });
  t.strictSame(counts, [1, 0, 0]);
  t.end();
});

test('a request waits only while the upstream is read and makes no response', (t) => {
  const open = new OpenUsage();
  const after = (now: number, isRead = true) => {
    open.forgetIgnored(now, 100, isRead);
    return open.inFlight;
  };
  open.ask(null);
  open.ask(null);
  t.equal(after(5000), 2);
  t.equal(after(6000, false), 2);
  open.note(eventOf({ type: 'response.created', response: {} }), null, false);
  t.equal(after(7000), 2);
  open.note(eventOf({ type: 'response.done', response: {} }), outputOf(1), false);
  t.equal(after(7100), 1);
  t.ok(open.isOpen);
  t.equal(after(7101), 0);
  t.notOk(open.isOpen);
  t.end();
});

test('a transcript that is told twice is known, and another part of its item, or an item that begins by the same id, is another', (t) => {
  const open = new OpenUsage();
  const type = 'conversation.item.input_audio_transcription.completed';
  const tells = (item_id: unknown, content_index?: number) =>
    open.tellsAgain(eventOf({ type, item_id, content_index, transcript: 'Yes.' }));
  t.strictSame([tells('item_1', 0), tells('item_1', 0), tells('item_1', 1)], [false, true, false]);
  t.strictSame([tells('item_1'), tells('item_2'), tells('item_2')], [true, false, true]);
  for (const begun of ['conversation.item.created', 'conversation.item.added']) {
    open.note(eventOf({ type: begun, item: { id: 'item_1', type: 'message' } }), null, false);
    t.strictSame([tells('item_1', 0), tells('item_1', 1), tells('item_1', 0)], [false, false, true]);
    t.ok(tells('item_2'));
  }
  for (const id of ['', null, 7, 'x'.repeat(300)]) t.strictSame([tells(id), tells(id)], [false, false]);
  for (let number = 10; number < 100; number++) tells(`item_${number}`);
  t.strictSame([tells('item_99'), tells('item_36'), tells('item_35')], [true, true, false]);
  t.end();
});

test('a transcript that is told again is no longer under way', (t) => {
  const open = new OpenUsage();
  const type = 'conversation.item.input_audio_transcription';
  const delta = eventOf({ type: `${type}.delta`, item_id: 'item_1', delta: 'Yes' });
  const completed = eventOf({ type: `${type}.completed`, item_id: 'item_1', transcript: 'Yes.' });
  open.note(delta, null, false);
  t.notOk(open.tellsAgain(completed));
  open.note(completed, null, false);
  open.note(delta, null, false);
  t.ok(open.tellsAgain(completed));
  t.notOk(open.isOpen);
  t.end();
});

test('no response is taken for another that has no id, or was not heard to begin, or ended long ago', (t) => {
  const open = new OpenUsage();
  const event = (type: string, id: unknown) => eventOf({ type, response: { id } });
  const done = (id: unknown) => open.tellsAgain(event('response.done', id));
  for (const id of ['', null, undefined, 7, 'x'.repeat(300)]) {
    open.note(event('response.created', id), null, false);
    t.strictSame([done(id), done(id)], [false, false]);
  }
  t.strictSame([done('resp_0'), done('resp_0')], [false, false]);
  for (let number = 1; number <= 100; number++) {
    open.note(event('response.created', `resp_${number}`), null, false);
    t.notOk(done(`resp_${number}`));
  }
  t.strictSame([done('resp_100'), done('resp_37'), done('resp_36')], [true, true, false]);
  t.end();
});

test('an item whose id its client has called like an event is none', (t) => {
  const open = begin();
  open.noteDelta(text('abcd'));
  for (const id of ['response.done', 'response.created', 'type'])
    for (const members of [
      { previous_item_id: id },
      { item: { id, type: id } },
      { text: `"type":"${id}"` },
    ]) {
      const type = 'conversation.item.created';
      open.note(eventOf({ type, ...members }), null, false);
      open.note(eventOf({ ...members, type }), null, false);
    }
  t.strictSame(open.shown, outputOf(1));
  open.note(eventOf({ item: { id: 'x', type: 'y', content: ['"}'] }, type: 'response.done' }), null, false);
  t.notOk(open.isOpen);
  open.note(new ServerEvent(Buffer.from('{ "type" : "response.created" }')), null, false);
  t.ok(open.isOpen);
  t.end();
});

test('the seconds of sound depend on its format, and on no rate that cannot be', (t) => {
  const ofPcm = (rate: unknown) => ({ audio: { output: { format: { type: 'audio/pcm', rate } } } });
  const responses: readonly (readonly [unknown, number])[] = [
    [ofPcm(24_000), 20],
    [ofPcm(16_000), 30],
    [ofPcm(48_000), 10],
    [{ output_audio_format: 'pcm16' }, 20],
    [{ output_audio_format: 'g711_ulaw' }, 120],
    [{ audio: { output: { format: { type: 'audio/pcma' } } } }, 120],
    ...[0, -1, 1, 7999, 48_001, 1e308, '24000', null, [], {}].map((rate) => [ofPcm(rate), 20] as const),
    ...[null, [], 'x', {}, { audio: null }, { audio: { output: [] } }, { padding: 'x'.repeat(70_000) }].map(
      (response) => [response, 20] as const,
    ),
  ];
  for (const [response, tokens] of responses) {
    const open = begin(response);
    open.noteDelta(sound(48_000));
    t.equal(open.shown?.output, tokens, JSON.stringify(response)?.slice(0, 80));
  }
  t.end();
});

test('a request waits while deltas show that a response is in progress whose beginning is not reported', (t) => {
  const open = new OpenUsage();
  let now = 0;
  const after = (ms: number) => {
    now += ms;
    open.forgetIgnored(now, 100, true);
    return open.inFlight;
  };
  const delta = eventOf({ type: 'response.output_text.delta', delta: 'word' }).bytes;
  after(1);
  open.ask(null);
  open.ask(null);
  t.equal(after(60), 2);
  open.noteDelta(delta);
  t.equal(after(90), 2);
  open.noteDelta(delta);
  t.equal(after(90), 2, 'it is still in progress');
  open.note(eventOf({ type: 'response.done', response: {} }), outputOf(1), false);
  t.equal(after(40), 1);
  open.noteDelta(delta);
  t.equal(after(101), 1, 'it is over');
  t.equal(after(1), 0);
  t.end();
});
