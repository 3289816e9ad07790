import { test } from 'tap';
import { MadeImages } from '../../../src/protocols/images/made.js';

/** Counts in an answer, or in a stream, that comes in two pieces. */
function counted(text: string, split: number, isStream = false): number | null {
  const made = new MadeImages();
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
      const made = new MadeImages();
      for (const piece of [stream.slice(0, split), stream.slice(split)]) made.addEvents(Buffer.from(piece));
      const { input = null, output = null } = made.usage ?? {};
      if (input !== expected[0] || output !== expected[1]) t.same([input, output], expected, `at ${split}`);
    }
  }
  t.pass();
});
