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
    [event('image_generation.partial_succeeded').repeat(3) + event('image_generation.completed'), 3],
  ];
  for (const [stream, made] of streams)
    for (let split = 0; split <= stream.length; split++)
      if (counted(stream, split, true) !== made) t.equal(counted(stream, split, true), made, `at ${split}`);
  t.pass();
});
