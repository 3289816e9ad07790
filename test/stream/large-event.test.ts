import { test } from 'tap';
import { LargeEvent } from '../../src/stream/large-event.js';
import { isObject, type JsonObject, parseObject } from '../../src/wire/json.js';
import { parseEvent } from '../../src/wire/sse.js';
import { places } from '../support/seed.js';

/** @param cuts where the parts of an event end @returns the event in its short form, with what follows it in its last part */
function short(text: string, cuts: readonly number[]): string {
  const bytes = Buffer.from(text);
  const event = new LargeEvent();
  const ends = [...cuts, bytes.length];
  return ends
    .map((to, index) => event.add(bytes.subarray(ends[index - 1] ?? 0, to), to < bytes.length).toString())
    .join('');
}

const dataOf = (event: string): JsonObject | null => parseObject(parseEvent(event).data ?? '');

/** The short form of a value, made without regard to its bytes. @param level of the objects that it is in, and itself */
function shortened(value: unknown, level = 1): unknown {
  if (typeof value === 'string') {
    const length = Buffer.byteLength(JSON.stringify(value)) - 2;
    return length > (level <= 4 ? 4096 : 256) ? '' : value;
  }
  if (Array.isArray(value)) return level > 5 ? [] : value.map((each) => shortened(each, level + 1));
  if (!isObject(value)) return value;
  if (level > 5) return {};
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each, level + 1)]));
}

const escaped = 'a"\\\n\u2028{[é😀';
const response = {
  id: 'resp_1',
  error: { message: escaped.repeat(200), code: null },
  output: [
    { id: 'ig_1', type: 'image_generation_call', result: 'A'.repeat(1000) },
    {
      id: 'i'.repeat(256),
      call_id: 'c'.repeat(257),
      text: escaped.repeat(30),
      svg_usage: { input_tokens: 1 },
    },
    { id: 'm', content: [{ text: escaped, logprobs: [[{ bytes: [1, 2] }]] }, {}, []] },
  ],
  instructions: '\\'.repeat(5000),
  usage: { input_tokens: 3, output_tokens_details: { reasoning_tokens: 1e3 } },
  metadata: { [escaped]: escaped, x: 'x'.repeat(512) },
};
const data = { type: 'response.completed', sequence_number: 7, response, last: escaped };
const plain = `event: response.completed\ndata: ${JSON.stringify(data)}`;
const lines = `data: ${JSON.stringify(data, null, 1).replaceAll('\n', '\r\ndata: ')}`;

test('the short form of an event has all but long texts and deep levels, wherever its parts end', (t) => {
  const expected = shortened(data) as JsonObject;
  t.not(JSON.stringify(expected), JSON.stringify(data));
  for (const event of [plain, lines]) {
    const text = `${event}\n\n`;
    const { length } = Buffer.from(text);
    for (const at of places(1, length, 7)) {
      const whole = short(text, [at, Math.min(length - 1, at + 1), Math.min(length - 1, at + 400)]);
      t.strictSame(dataOf(whole), expected, `cut at ${at}`);
      t.ok(whole.endsWith('}\n\n'));
    }
    t.strictSame(
      dataOf(
        short(
          text,
          [...Array(length - 1).keys()].map((at) => at + 1),
        ),
      ),
      expected,
    );
  }
  t.end();
});

test('events before and behind a large one are left as they are, however its blank line is cut', (t) => {
  const before = 'event: a\ndata: {"a":1}\n\n: ping\n\n';
  const behind = 'data: [DONE]\n\n: "{\n\n';
  const expected = `${before}${short(`${plain}\n\n`, [100])}${behind}`;
  for (const blank of ['\n\n', '\r\n\r\n', '\r\r', '\nid: 7\n\n']) {
    const start = Buffer.byteLength(before + plain);
    for (let cut = 0; cut <= blank.length; cut++) {
      const cuts = [before.length + 100, start + cut].filter((at) => at < start + blank.length);
      t.equal(short(before + plain + blank + behind, cuts), expected, JSON.stringify([blank, cut]));
    }
  }
  t.end();
});

test('an event has ended where its JSON has', (t) => {
  const event = new LargeEvent();
  event.add(Buffer.from(plain.slice(0, -1)), true);
  t.notOk(event.isClosed);
  event.add(Buffer.from('}'), true);
  t.ok(event.isClosed);
  t.strictSame(dataOf(event.whole().toString()), shortened(data));
  t.end();
});

test('an event that is no JSON hides nothing of those behind it', (t) => {
  for (const junk of [
    'data: "',
    'data: {"a":["b',
    ': it\'s "a',
    'data: ]}',
    `data: ${'x'.repeat(3_000_000)}`,
  ]) {
    const whole = short(`${junk}${'y'.repeat(1000)}\n\ndata: {"b":1}\n\n`, [junk.length + 500]);
    t.ok(whole.endsWith('\n\ndata: {"b":1}\n\n'), junk.slice(0, 20));
  }
  t.end();
});

const mib = 1024 * 1024;

test('what is kept of an event is bounded, however many items and levels it has', (t) => {
  const items = new Array(100_000).fill({ id: 'x'.repeat(50), content: [{}] });
  const own = {
    id: 'resp_1',
    usage: { output_tokens_details: { reasoning_tokens: 1 } },
    status: 'completed',
  };
  const { id, ...others } = own;
  for (const answer of [
    { ...own, output: items },
    { output: items, ...own },
    { id, output: items, ...others, more: items },
  ]) {
    const large = { type: 'response.completed', response: answer, sequence_number: 7 };
    const whole = short(`data: ${JSON.stringify(large)}\n\n`, [mib]);
    const kept = { ...answer, output: [], ...('more' in answer ? { more: [] } : {}) };
    t.strictSame(dataOf(whole), { ...large, response: kept });
  }
  for (const part of ['[', '{"a":', '"a":1,', '"a",'].map((each) => Buffer.from(each.repeat(100_000)))) {
    const event = new LargeEvent();
    event.add(Buffer.from('event: response.completed\ndata: {'), true);
    for (let at = 0; at < 50; at++) event.add(part, true);
    t.ok(event.bytes <= mib, `${event.bytes} bytes`);
    t.ok(event.whole().length <= mib + 2);
  }
  t.end();
});

test('the short form of an event is JSON wherever it becomes too long', (t) => {
  const item = '{"id":"abcdef","c":[1]},';
  for (const most of [768 * 1024, mib]) {
    const items = item.repeat(Math.floor((most - 100) / item.length));
    for (let pad = 0; pad < item.length; pad++) {
      const list = `[${items}{"i":"${'y'.repeat(pad)}"},"",{"i":["z"]}]`;
      const event = `data: {"type":"response.completed","response":{"output":${list},"usage":{}},"sequence_number":7}`;
      const { type, sequence_number } = dataOf(short(`${event}\n\n`, [1000])) ?? {};
      t.strictSame([type, sequence_number], ['response.completed', 7], `${most} ${pad}`);
    }
  }
  t.end();
});

test('braces in front of the data of an event do not begin its JSON', (t) => {
  for (const before of [': {}\n', ': data: {\n', 'id: {"a":[1]}\r\n', ': ]}\n', '\ufeff'])
    for (const field of ['data: ', 'data:', 'data:  '])
      t.strictSame(
        dataOf(short(`${before}${field}${JSON.stringify(data)}\n\n`, [20, 300])),
        shortened(data),
        before,
      );
  t.end();
});

test('an image takes no memory', (t) => {
  const event = new LargeEvent();
  event.add(Buffer.from('data: {"response":{"output":[{"result":"'), true);
  for (let at = 0; at < 50; at++) event.add(Buffer.alloc(mib, 'A'), true);
  t.ok(event.bytes <= 16 * 1024, `${event.bytes} bytes`);
  t.end();
});
