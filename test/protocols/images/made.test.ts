import { test } from 'tap';
import { ImageCounter } from '../../../src/protocols/images/made.js';

/** Counts in an answer, or in a stream, that comes in two pieces. */
function counted(text: string, split: number, isStream = false): number | null {
  const made = new ImageCounter();
  const bytes = Buffer.from(text);
  for (const piece of [bytes.subarray(0, split), bytes.subarray(split)]) {
    if (isStream) made.addEvents(piece);
    else made.addWhole(piece);
  }
  return made.units;
}

const image = { b64_json: 'AAAA', revised_prompt: 'a "fox", "error": {} \\', sizes: [{ error: {} }] };
const answers: readonly (readonly [object, number | null])[] = [
  [{ created: 1, data: [] }, 0],
  [{ created: 1, data: [image, image, { url: '', error: null }, { error: '' }] }, 4],
  [
    { data: [image, { error: { code: 'refused' } }, { b64_json: null, error: 'refused' }, null, 'x', [1]] },
    1,
  ],
  [{ usage: { data: [image] }, images: [image], text: '"data":[{}]' }, null],
  [{ data: { data: [image] } }, null],
  [{ object: 'list', data: [{ 'error ': {}, errors: {} }], error: { data: 7 } }, 1],
];

test('the images of an answer are the objects in its data that are no errors, wherever it is cut', async (t) => {
  for (const [answer, made] of answers) {
    for (const text of [JSON.stringify(answer), JSON.stringify(answer, null, 2)])
      for (let split = 0; split <= text.length; split++)
        if (counted(text, split) !== made) t.equal(counted(text, split), made, `${text} at ${split}`);
  }
  t.pass();
});

test('of an answer whose list has no end nothing is known', async (t) => {
  t.equal(counted(JSON.stringify({ data: [image, image] }).slice(0, -2), 9), null);
  t.equal(counted('', 0), null);
  t.equal(counted('not JSON: "', 3), null);
});

const event = (type: string, name = `event: ${type}\n`, more: object = { type }) =>
  `${name}data: ${JSON.stringify({ b64_json: 'AA', ...more, revised_prompt: `"${type}"` })}\n\n`;

test('the images of a stream are those that are completed, wherever it is cut', async (t) => {
  const partial = event('image_generation.partial_image');
  const streams: readonly (readonly [string, number | null])[] = [
    [partial, null],
    [partial + event('image_generation.completed') + event('image_edit.completed'), 2],
    [event('image_edit.completed', '') + event('image_edit.completed', ''), 2],
    [event('image_edit.completed', undefined, {}) + event('image_edit.completed', undefined, {}), 2],
    [event('image_edit.completed', 'event: image_edit.completed\r\n', {}).repeat(2), 2],
    [event('image_edit.completed', '') + event('image_edit.completed', undefined, {}), 2],
    [event('image_edit.completed', undefined, {}).replaceAll('\n', '\r').repeat(2), 2],
    [event('image_generation.partial_succeeded').repeat(3) + event('image_generation.completed'), 3],
    [event('image_edit.partial_succeeded').repeat(3) + event('image_edit.completed'), 3],
  ];
  for (const [stream, made] of streams)
    for (let split = 0; split <= stream.length; split++)
      if (counted(stream, split, true) !== made) t.equal(counted(stream, split, true), made, `at ${split}`);
  t.pass();
});

test('the usages of a stream are those of its complete images, wherever it is cut', async (t) => {
  const usage = { input_tokens: 2, output_tokens: 30, total_tokens: 32 };
  const ofType = (type: string, name?: string) => event(type, name, { type, usage });
  const partial = ofType('image_generation.partial_image');
  const long = event('image_edit.completed', undefined, { b64_json: 'A'.repeat(4000), usage });
  const first = `event: image_edit.completed\ndata: ${JSON.stringify({ usage, b64_json: 'A'.repeat(4000) })}\n\n`;
  const streams: readonly (readonly [string, number | null])[] = [
    [partial, null],
    [event('image_generation.completed'), null],
    [partial + ofType('image_generation.completed') + partial + ofType('image_edit.completed'), 2],
    [ofType('image_edit.completed', '').repeat(3), 3],
    [`: ping\n\n${long}${first}`, 2],
    [ofType('image_edit.completed').replaceAll('\n', '\r\n').repeat(2), 2],
    [partial + ofType('image_edit.completed').slice(0, -2), 1],
    [`${ofType('image_generation.completed')}${event('image_generation.completed')}data: [DONE]\n\n`, 1],
  ];
  for (const [stream, images] of streams) {
    const expected = images === null ? [null, null] : [2 * images, 30 * images];
    for (let split = 0; split <= stream.length; split++) {
      const made = new ImageCounter();
      for (const piece of [stream.slice(0, split), stream.slice(split)]) made.addEvents(Buffer.from(piece));
      const { input = null, output = null } = made.usage ?? {};
      if (input !== expected[0] || output !== expected[1]) t.same([input, output], expected, `at ${split}`);
    }
  }
  t.pass();
});

test('a type is found wherever it is in an event of megabytes, and no other string hides it', async (t) => {
  const long = 'A'.repeat(5000);
  const usage = { input_tokens: 2, output_tokens: 30, total_tokens: 32 };
  const data = (...members: object[]) => `data: ${JSON.stringify(Object.assign({}, ...members))}\n`;
  const completed = { type: 'image_generation.completed' };
  const rest = { b64_json: long, usage };
  const prompt = (text: string) => ({ revised_prompt: text });
  const partial = data({ type: 'image_generation.partial_image' }, prompt(completed.type), {
    b64_json: long,
  });
  const url = { url: `https://images.example/${long}` };
  const ofOne = data(url, { type: 'image_generation.partial_succeeded', size: long });
  const name = `event: ${completed.type}\n`;
  const comments = `: ${'k'.repeat(700)}\n`;
  const streams: readonly (readonly [string, string, number | null, number | null])[] = [
    ['a type between long members', `${data(prompt(long), completed, rest)}\n`.repeat(2), 2, 60],
    ['a spaced type', `${data(prompt(long), completed, rest)}\n`.replace('"type":', '"type" : '), 1, 30],
    ['a prompt before it', `${data(prompt('image_generation.partial_image'), completed, rest)}\n`, 1, 30],
    ['a prompt behind it', `${data(completed, prompt('image_generation.partial_image'), rest)}\n`, 1, 30],
    ['a user', `${data({ user: 'image_generation.partial_succeeded' }, completed, rest)}\n`, 1, 30],
    ['a prompt of a partial image', `${partial}\n`, null, null],
    ['its prompt is its type', `${data(prompt(completed.type), completed, rest)}\n`, 1, 30],
    ['no type but a string', `${data({ object: completed.type }, rest)}\n`, 1, 30],
    ['long comments', `${comments}${name}${data(rest)}\n`, 1, 30],
    ['a name behind the data', `${data(rest)}${name}\n`, 1, 30],
    ['a name without a space', `${name.replace(': ', ':')}${data(rest)}\n`, 1, 30],
    ['no blank lines', data(completed, rest).repeat(2), 2, 30],
    ['no blank lines, names', `${name}${data(rest)}`.repeat(2), 2, 30],
    ['names and types', `${name}${data(completed, rest)}\n`.repeat(2), 2, 60],
    ['single images', `${ofOne}\n${ofOne}\n${data(completed, { usage })}\n`, 2, 30],
    ['single images, no blank lines', ofOne.repeat(3) + data(completed, { usage }), 3, 30],
    ['ends of two bytes', `${name}${data(rest)}\n`.replaceAll('\n', '\r\n').repeat(2), 2, 60],
    ['ends of a CR', `${name}${data(rest)}\n`.replaceAll('\n', '\r').repeat(2), 2, 60],
    ['ends of a CR, types', `${data(completed, rest)}\n`.replaceAll('\n', '\r').repeat(3), 3, 90],
    ['a CRLF within an event', `${name}\n${data(rest)}\n`.replace('\n\n', '\r\n').repeat(2), 2, 60],
    ['a name that has not ended', name.trimEnd(), null, null],
  ];
  for (const [what, stream, images, output] of streams)
    for (const size of [stream.length, 1, 7, 16, 17, 61, 113, 4096]) {
      const made = new ImageCounter();
      for (let at = 0; at < stream.length; at += size)
        made.addEvents(Buffer.from(stream.slice(at, at + size)));
      t.same([made.units, made.usage?.output ?? null], [images, output], `${what} in pieces of ${size}`);
    }
});

test('an image that has a usage is no report of the others where a user is named like an event', async (t) => {
  const made = new ImageCounter();
  const user = { user: 'image_generation.partial_succeeded', type: 'image_generation.completed' };
  made.addEvents(Buffer.from(`data: ${JSON.stringify(user)}\n\n`));
  made.addEvents(Buffer.from(`data: ${JSON.stringify({ ...user, usage: { output_tokens: 3 } })}\n\n`));
  t.same([made.completed, made.reported, made.begun], [2, 1, 2]);
});
