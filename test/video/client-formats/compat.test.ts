import { test } from 'tap';
import { advance, failedTask, submitted } from '../../../src/video/advance.js';
import {
  compatClientFormat,
  readCompatBody,
  readCompatForm,
} from '../../../src/video/client-formats/compat.js';
import {
  context,
  noResult,
  part,
  png,
  pngText,
  result,
  sampleTask,
  sayable,
  start,
  update,
} from '../samples.js';

const model = part('model', 'film');
const prompt = part('prompt', 'A cat');
const body = { model: 'film', prompt: 'A cat' };

test('a form with every field', async (t) => {
  const parts = [
    model,
    prompt,
    part('seconds', '8'),
    part('size', '720x1280'),
    part('style', 'noir'),
    part('tags[]', 'a'),
    part('tags[]', 'b'),
    part('input_reference', png, { filename: 'cat.png', contentType: 'image/png' }),
  ];
  t.same(readCompatForm(parts), {
    format: 'compat',
    operation: 'image',
    model: 'film',
    prompt: 'A cat',
    negativePrompt: null,
    image: { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: 'cat.png', at: 'input_reference' },
    imageTail: null,
    seconds: 8,
    width: 720,
    height: 1280,
    aspectRatio: null,
    fps: null,
    seed: null,
    count: null,
    cfgScale: null,
    mode: null,
    unreadLength: null,
    fault: null,
    externalId: null,
    body: {
      model: 'film',
      prompt: 'A cat',
      seconds: '8',
      size: '720x1280',
      style: 'noir',
      'tags[]': ['a', 'b'],
    },
    json: null,
    form: parts,
  });
});

test('the ways to give the image of a form', async (t) => {
  const image = (...parts: Parameters<typeof readCompatForm>[0]) =>
    readCompatForm([model, prompt, ...parts]).image;
  const url = { kind: 'url', url: 'https://h/cat.png' };
  t.match(image(part('input_reference[image_url]', 'https://h/cat.png')), url);
  t.match(image(part('input_reference', 'https://h/cat.png')), url);
  t.match(image(part('input_reference', pngText)), { kind: 'bytes', mediaType: 'image/png' });
  t.match(image(part('input_reference', png, { contentType: 'image/png' })), { kind: 'bytes', bytes: png });
  t.match(image(part('input_reference[]', png, { filename: 'a' })), {
    kind: 'bytes',
    at: 'input_reference[]',
  });
  t.match(image(part('input_reference', png, { filename: 'a', contentType: 'application/octet-stream' })), {
    mediaType: 'image/png',
  });
  t.equal(image(part('input_reference', '', { filename: '' })), null, 'no file was chosen');
  t.equal(image(part('input_reference', '')), null);
  t.equal(image(), null);
  t.equal(readCompatForm([model, prompt]).operation, 'text');
});

test('a form that is refused where it is said in another format, by the field at fault', async (t) => {
  const cases: [string, Parameters<typeof readCompatForm>[0], string, string?][] = [
    ['no model', [prompt], 'model', 'missing_parameter'],
    ['empty model', [part('model', ''), prompt], 'model'],
    ['no prompt', [model], 'prompt', 'missing_parameter'],
    ['empty prompt', [model, part('prompt', '')], 'prompt'],
    ['long prompt', [model, part('prompt', 'x'.repeat(32_001))], 'prompt'],
    ['two models', [model, model, prompt], 'model'],
    ['two prompts', [model, prompt, prompt], 'prompt'],
    ['no file', [model, prompt, part('input_reference', '', { filename: 'a.png' })], 'input_reference'],
    [
      'two images',
      [
        model,
        prompt,
        part('input_reference', png, { filename: 'a' }),
        part('input_reference[image_url]', 'https://h'),
      ],
      'input_reference',
    ],
    ['no URL', [model, prompt, part('input_reference[image_url]', 'ftp://h')], 'input_reference[image_url]'],
    [
      'a file of another service',
      [model, prompt, part('input_reference[file_id]', 'file_1')],
      'input_reference[file_id]',
      'unsupported_parameter',
    ],
    ...['0', '-4', 'four', '1e1', ' 4', '1234567890'].map(
      (seconds): [string, Parameters<typeof readCompatForm>[0], string] => [
        `seconds ${seconds}`,
        [model, prompt, part('seconds', seconds)],
        'seconds',
      ],
    ),
    ['size', [model, prompt, part('size', 'big')], 'size'],
  ];
  for (const [name, parts, param, kind = 'invalid_value'] of cases)
    t.throws(() => sayable(readCompatForm(parts)), { name: 'GatewayError', status: 400, kind, param }, name);
  t.doesNotThrow(() => sayable(readCompatForm([model, part('prompt', '\u{1f63a}'.repeat(32_000))])));
});

test('a JSON body', async (t) => {
  t.match(readCompatBody({ ...body, seconds: '12', size: '1280x720', style: 1 }), {
    operation: 'text',
    seconds: 12,
    width: 1280,
    height: 720,
    json: null,
    form: null,
    body: { style: 1 },
  });
  for (const seconds of [8, '8', '8.0']) t.match(readCompatBody({ ...body, seconds }), { seconds: 8 });
  for (const seconds of [4.5, '4.5']) t.match(readCompatBody({ ...body, seconds }), { seconds: 4.5 });
  t.match(readCompatBody({ ...body, size: '16:9' }), { width: null, aspectRatio: '16:9', fault: null });
  t.match(readCompatBody({ ...body, seconds: null, size: null, input_reference: null }), { seconds: null });
  t.match(readCompatBody({ ...body, input_reference: { image_url: 'https://h/i' } }), {
    operation: 'image',
    image: { kind: 'url', at: 'input_reference.image_url' },
  });
  t.match(readCompatBody({ ...body, input_reference: `data:image/png;base64,${pngText}` }), {
    image: { kind: 'bytes', at: 'input_reference' },
  });
});

test('a JSON body that is refused where it is said in another format, by the member at fault', async (t) => {
  const cases: [object, string][] = [
    [{ prompt: 'x' }, 'model'],
    [{ model: 'm' }, 'prompt'],
    [{ ...body, model: 7 }, 'model'],
    [{ ...body, prompt: ['x'] }, 'prompt'],
    [{ ...body, seconds: 0 }, 'seconds'],
    [{ ...body, seconds: true }, 'seconds'],
    [{ ...body, seconds: 'x' }, 'seconds'],
    [{ ...body, size: '1280*720' }, 'size'],
    [{ ...body, input_reference: 7 }, 'input_reference'],
    [{ ...body, input_reference: 'nothing!' }, 'input_reference'],
    [{ ...body, input_reference: { image_url: 7 } }, 'input_reference.image_url'],
    [{ ...body, input_reference: { image_url: 'x!' } }, 'input_reference.image_url'],
    [{ ...body, input_reference: { file_id: 'file_1' } }, 'input_reference.file_id'],
  ];
  for (const [wrong, param] of cases)
    t.throws(
      () => sayable(readCompatBody({ ...wrong })),
      { name: 'GatewayError', status: 400, param },
      JSON.stringify(wrong),
    );
});

test('what only an upstream of the format is asked has its model, its length and whether there is an image', async (t) => {
  const passed = {
    format: 'compat',
    model: 'film',
    operation: 'text',
    prompt: null,
    image: null,
    seconds: 8,
  };
  const long = { ...body, seconds: 8, prompt: 'x'.repeat(32_001) };
  t.match(readCompatBody(long), { ...passed, body: long, unreadLength: null, fault: { param: 'prompt' } });
  t.match(readCompatBody({ ...body, seconds: '8', size: '720p' }), { ...passed, fault: { param: 'size' } });
  t.match(readCompatBody({ ...body, seconds: 8, input_reference: { file_id: 'file_1' } }), {
    ...passed,
    operation: 'image',
    fault: { param: 'input_reference.file_id' },
  });
  for (const seconds of ['auto', -1, 0, true, [8], 1e300])
    t.match(readCompatBody({ ...body, seconds }), {
      ...passed,
      seconds: null,
      unreadLength: 'seconds',
      fault: { param: 'seconds' },
    });
  const parts = [model, part('seconds', '8'), part('input_reference[file_id]', 'file_1')];
  t.match(readCompatForm(parts), { ...passed, operation: 'image', form: parts, fault: { status: 400 } });
  const two = [
    ...parts.slice(0, 2),
    ...['a', 'b'].map((name) => part('input_reference', png, { filename: name })),
  ];
  t.match(readCompatForm(two), { ...passed, operation: 'image', form: two, fault: { status: 400 } });
});

test('a model is asked for whatever the upstream takes', async (t) => {
  for (const wrong of [{ prompt: 'x' }, { model: '', prompt: 'x' }, { model: 7 }])
    t.throws(() => readCompatBody({ ...wrong }), { name: 'GatewayError', param: 'model' });
  t.throws(() => readCompatForm([prompt]), { name: 'GatewayError', param: 'model' });
  t.throws(() => readCompatForm([model, part('seconds', '4'), part('seconds', '5')]), {
    name: 'GatewayError',
    param: 'seconds',
  });
});

const seven = {
  id: 'video_1',
  object: 'video',
  model: 'film',
  status: 'queued',
  progress: 0,
  created_at: 1_700_000_000,
  seconds: '8',
};

test('a created task has every member', async (t) => {
  const task = submitted(sampleTask(), { id: 'up-1', update: null }, start);
  t.strictSame(JSON.parse(compatClientFormat.created(task, context)), {
    ...seven,
    expires_at: 1_700_003_600,
    size: '1280x720',
  });
  t.notOk('size' in JSON.parse(compatClientFormat.created({ ...task, size: null }, context)));
  const done = advance(task, update('completed', { result: noResult }), start + 5000);
  t.match(JSON.parse(compatClientFormat.created(done, context)), {
    completed_at: 1_700_000_005,
    progress: 100,
  });
});

test('a task that is asked for has seven members, and its error when it failed', async (t) => {
  const shown = (task: ReturnType<typeof sampleTask>) =>
    JSON.parse(compatClientFormat.shown(task, context)) as unknown;
  t.strictSame(shown(sampleTask()), seven, 'one that is being submitted waits');
  const running = advance(sampleTask(), update('in_progress', { progress: 40 }), start);
  t.strictSame(shown(running), { ...seven, status: 'in_progress', progress: 40 });
  const done = advance(running, update('completed', { result }), start);
  t.strictSame(shown(done), { ...seven, status: 'completed', progress: 100 });
  const failed = failedTask(running, { code: '50412', message: 'No.' }, start);
  t.strictSame(shown(failed), {
    ...seven,
    status: 'failed',
    progress: 40,
    error: { code: 'content_policy_violation', message: 'No.' },
  });
  t.equal(compatClientFormat.missing('x', context), null);
});
