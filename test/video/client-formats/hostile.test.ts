import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { newTask } from '../../../src/video/advance.js';
import { readTask, writeTask } from '../../../src/video/book.js';
import { readCompatBody, readCompatForm } from '../../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../../src/video/client-formats/generic.js';
import { readVendorjQuery, readVendorjSubmit } from '../../../src/video/client-formats/vendorj.js';
import { readVendorkBody } from '../../../src/video/client-formats/vendork.js';
import { upstreamFormats } from '../../../src/video/formats.js';
import { type VideoRequest, videoFormats } from '../../../src/video/task.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';
import { part, pngText, start } from '../samples.js';

const names = [
  'model',
  'model_name',
  'req_key',
  'prompt',
  'negative_prompt',
  'image',
  'image_tail',
  'input_reference',
  'input_reference[image_url]',
  'binary_data_base64',
  'image_urls',
  'seconds',
  'duration',
  'frames',
  'size',
  'width',
  'height',
  'aspect_ratio',
  'seed',
  'n',
  'cfg_scale',
  'mode',
  'sound',
  'dynamic_masks',
  'callback_url',
  'external_task_id',
  'task_id',
];

const texts = fc.constantFrom(
  'film',
  'A cat',
  '',
  '5',
  '1280x720',
  '16:9',
  'https://h/i',
  pngText,
  '\ud800',
  'off',
);
const numbers = fc.constantFrom(0, 1, 5, 0.5, 121, -1, 1e300, 99_999);
const lists = fc.array(fc.constantFrom<unknown>('https://h/i', pngText, 7), { maxLength: 3 });
const values: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: texts },
  { weight: 3, arbitrary: numbers },
  { weight: 2, arbitrary: lists },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
  { weight: 1, arbitrary: fc.constantFrom({ image_url: 'https://h/i' }, { file_id: 'f' }, null) },
);
const some: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(fc.constantFrom(...names), values), { maxLength: 6 })
  .map((entries) => Object.fromEntries(entries));
const bodies: fc.Arbitrary<JsonObject> = fc
  .tuple(some, fc.option(some), fc.boolean())
  .map(([members, metadata, isNamed]) => ({
    ...(isNamed ? { model: 'film', req_key: 'film', prompt: 'A cat' } : {}),
    ...members,
    ...(metadata === null ? {} : { metadata }),
  }));

/** True when the work is done or refused with a status of the client's side and words. */
function isSound(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (fault) {
    if (fault instanceof GatewayError) return fault.status === 400 && fault.message !== '';
    throw fault;
  }
}

/** A request that was read can be kept as a task and told to any upstream, or is refused. */
function useRequest(request: VideoRequest): void {
  for (const format of videoFormats) {
    const upstream = { name: 'studio', format, model: 'film-1', credential: null };
    const task = newTask({ id: 'video_1', keyId: 'k', groups: [], request, upstream, now: start, ttlMs: 1 });
    if (readTask(writeTask(task)) === null || !/^(?=.*[1-9])\d+(?:\.\d+)?$/.test(task.seconds))
      throw new Error(`no task: ${writeTask(task)}`);
    if (!isSound(() => upstreamFormats[format].create(request, 'film-1', 'video_1')))
      throw new Error(`refused with another status by ${format}`);
  }
}

test('no body breaks its reader or a wire', async (t) => {
  const readers: [string, (body: JsonObject) => void][] = [
    ['compat', (body) => useRequest(readCompatBody(body))],
    ['generic', (body) => useRequest(readGenericBody(body))],
    ['text2video', (body) => useRequest(readVendorkBody(body, 'text'))],
    ['image2video', (body) => useRequest(readVendorkBody({ image: pngText, ...body }, 'image'))],
    ['vendorj', (body) => useRequest(readVendorjSubmit(body))],
    ['query', (body) => void readVendorjQuery(body)],
  ];
  for (const [name, read] of readers) {
    fc.assert(
      fc.property(bodies, (body) => isSound(() => read(body))),
      { numRuns: cases(300) },
    );
    t.pass(name);
  }
});

test('no form breaks its reader or a wire', async (t) => {
  const parts = fc.array(
    fc
      .tuple(fc.constantFrom(...names, '__proto__'), texts, fc.constantFrom('', 'a.png', null), fc.boolean())
      .map(([name, data, filename, isTyped]) =>
        part(name, data, {
          ...(filename === null ? {} : { filename }),
          ...(isTyped ? { contentType: 'image/png' } : {}),
        }),
      ),
    { maxLength: 6 },
  );
  const first = [part('model', 'film'), part('prompt', 'A cat')];
  fc.assert(
    fc.property(parts, fc.boolean(), (more, isNamed) =>
      isSound(() => useRequest(readCompatForm(isNamed ? [...first, ...more] : more))),
    ),
    { numRuns: cases(300) },
  );
  t.pass();
});
