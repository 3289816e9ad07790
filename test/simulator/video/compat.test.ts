import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { eventually } from '../../support/eventually.js';
import { simulate } from '../../support/simulator.js';
import { type Field, file, type Given, get, postForm, postJson } from '../media-ask.js';

const path = '/v1/videos';
const small = { seconds: '1', size: '64x48' };
const body = (prompt: string, more: object = {}): object => ({
  model: 'sim-video',
  prompt,
  ...small,
  ...more,
});
const done = '[[video:queued=0 running=0]] a fox';
const never = '[[video:queued=3600000]] a fox';

async function make(simulator: Simulator, sent: object, headers = {}): Promise<Record<string, unknown>> {
  const heard = await postJson(simulator, path, sent, headers);
  if (heard.status !== 200) {
    throw new Error(heard.text);
  }
  return JSON.parse(heard.text);
}

const retrieve = async (simulator: Simulator, id: unknown): Promise<Record<string, unknown>> =>
  JSON.parse((await get(simulator, `${path}/${id}`)).text);
const contentOf = (simulator: Simulator, id: unknown, query = ''): Promise<Given> =>
  get(simulator, `${path}/${id}/content${query}`);

test('a task goes forward only, and its progress never falls', async (t) => {
  const simulator = await simulate(t, { videoPace: { queuedMs: 40, runningMs: 120 } });
  const asked = Math.floor(Date.now() / 1000);
  const made = await make(simulator, body('a fox'));
  t.match(made, {
    id: /^video_[\w-]+$/,
    object: 'video',
    model: 'sim-video',
    status: 'queued',
    progress: 0,
    completed_at: null,
    expires_at: null,
    error: null,
    remixed_from_video_id: null,
    ...small,
  });
  t.ok(Number(made.created_at) >= asked);
  const seen: Record<string, unknown>[] = [made];
  await eventually(async () => seen.push(await retrieve(simulator, made.id)), {
    fits: () => seen.at(-1)?.status === 'completed',
  });
  const ranks = seen.map((one) => ['queued', 'in_progress', 'completed'].indexOf(String(one.status)));
  const progress = seen.map((one) => Number(one.progress));
  for (const values of [ranks, progress]) {
    t.ok(values.every((one, index) => one >= 0 && (index === 0 || one >= (values[index - 1] ?? 0))));
  }
  t.ok(progress.slice(0, -1).every((one) => one < 100));
  const last = seen.at(-1);
  t.match(last, { progress: 100, completed_at: Number, expires_at: Number, error: null });
  t.ok(Number(last?.completed_at) >= Number(made.created_at));
  t.equal(simulator.state().polls, seen.length - 1);
  t.equal(simulator.state().videosMade, 1);
});

test('a form makes a task too, with and without an image', async (t) => {
  const simulator = await simulate(t);
  const fields: readonly Field[] = [
    ['model', 'sim-video'],
    ['prompt', done],
    ['seconds', '1'],
    ['size', '64x48'],
  ];
  const references: readonly (readonly Field[])[] = [
    [],
    [['input_reference', file('a.png', 'image/png')]],
    [['input_reference[image_url]', 'https://example.com/a.png']],
    [['input_reference[file_id]', 'file-1']],
  ];
  const videos: string[] = [];
  for (const reference of references) {
    const heard = await postForm(simulator, path, [...fields, ...reference]);
    t.equal(heard.status, 200, heard.text);
    const { bytes } = await contentOf(simulator, JSON.parse(heard.text).id);
    videos.push(bytes.toString('base64'));
  }
  t.equal(new Set(videos).size, references.length, 'the image counts');
});

test('a task outlives the simulator that made it', async (t) => {
  const first = await simulate(t);
  const made = await make(first, body(done));
  const content = await contentOf(first, made.id);
  await first.close();
  const second = await simulate(t);
  t.match(await retrieve(second, made.id), { id: made.id, status: 'completed', created_at: made.created_at });
  t.ok((await contentOf(second, made.id)).bytes.equals(content.bytes));
});

test('an id that was not made here is 404', async (t) => {
  const simulator = await simulate(t);
  const { id } = await make(simulator, body(done));
  const changed = String(id).replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  for (const unknown of ['video_1', 'x', changed, `task_${String(id).slice('video_'.length)}`]) {
    const heard = await get(simulator, `${path}/${unknown}`);
    t.match([heard.status, JSON.parse(heard.text).error.code], [404, 'video_not_found'], unknown);
    t.equal((await contentOf(simulator, unknown)).status, 404);
  }
});

test('content is there in three variants once the task is completed', async (t) => {
  const simulator = await simulate(t);
  const { id } = await make(simulator, body(done));
  const video = await contentOf(simulator, id);
  t.equal(video.headers.get('content-type'), 'video/mp4');
  t.equal(video.bytes.toString('latin1', 4, 8), 'ftyp');
  t.ok((await contentOf(simulator, id, '?variant=video')).bytes.equals(video.bytes));
  const thumbnail = await contentOf(simulator, id, '?variant=thumbnail');
  t.equal(thumbnail.headers.get('content-type'), 'image/webp');
  t.equal(thumbnail.bytes.toString('latin1', 8, 12), 'WEBP');
  const sheet = await contentOf(simulator, id, '?variant=spritesheet');
  t.equal(sheet.headers.get('content-type'), 'image/jpeg');
  t.equal(sheet.bytes.readUInt16BE(0), 0xffd8);
  t.equal((await contentOf(simulator, id, '?variant=poster')).status, 400);
  const waiting = await make(simulator, body(never));
  const early = await contentOf(simulator, waiting.id);
  t.match([early.status, JSON.parse(early.text).error.code], [404, 'video_not_ready']);
});

test('a task fails when it was asked to', async (t) => {
  const simulator = await simulate(t);
  const { id } = await make(simulator, body('[[video:queued=0 running=0 fail=content_policy]] a fox'));
  t.match(await retrieve(simulator, id), {
    status: 'failed',
    completed_at: null,
    error: { code: 'content_policy', message: /content policy/ },
  });
  t.equal((await contentOf(simulator, id)).status, 404);
});

test('a request that is repeated with its key makes no second task', async (t) => {
  const simulator = await simulate(t);
  const key = { 'idempotency-key': 'one' };
  const made = await make(simulator, body(never), key);
  t.strictSame(await make(simulator, body(never), key), made);
  t.not((await make(simulator, body(never), { 'idempotency-key': 'two' })).id, made.id);
  t.not((await make(simulator, body(never))).id, (await make(simulator, body(never))).id);
  t.equal(simulator.state().videosMade, 4);
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => make(simulator, body(never), { 'idempotency-key': 'three' })),
  );
  t.equal(new Set(answers.map((answer) => answer.id)).size, 1);
  t.equal(simulator.state().videosMade, 5);
});

test('a task is not made where the answer is an error, but is where the answer gets lost', async (t) => {
  const simulator = await simulate(t);
  const refused = await postJson(simulator, path, body('[[fault:status=503 times=1]] a fox'));
  t.equal(refused.status, 503);
  t.equal(simulator.state().videosMade, 0);
  t.equal((await postJson(simulator, path, body('a fox', { size: 'x' }))).status, 400);
  t.equal(simulator.state().videosMade, 0);
  const headers = { 'idempotency-key': 'one', 'x-simulator-fault': 'reset times=1' };
  await t.rejects(postJson(simulator, path, body(never), headers));
  await eventually(() => simulator.state().videosMade === 1);
  await make(simulator, body(never), headers);
  t.equal(simulator.state().videosMade, 1);
});

test('faults of polls and of content are asked for when the task is made', async (t) => {
  const simulator = await simulate(t);
  const wishes = '[[poll:status=500 times=1]][[content:status=429 retry-after=3 times=1]]';
  for (const turn of [1, 2]) {
    const { id } = await make(simulator, body(`${wishes} ${done}`));
    t.equal((await get(simulator, `${path}/${id}`)).status, 500, `task ${turn}`);
    t.match(await retrieve(simulator, id), { status: 'completed' });
    const limited = await contentOf(simulator, id);
    t.match([limited.status, limited.headers.get('retry-after')], [429, '3']);
    t.equal((await contentOf(simulator, id)).status, 200);
  }
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [{ model: undefined }, 400, 'model'],
    [{ model: 'nope' }, 404, 'model'],
    [{ prompt: undefined }, 400, 'prompt'],
    [{ prompt: '' }, 400, 'prompt'],
    [{ seconds: 4 }, 400, 'seconds'],
    [{ seconds: '0' }, 400, 'seconds'],
    [{ seconds: '4.5' }, 400, 'seconds'],
    [{ seconds: '61' }, 400, 'seconds'],
    [{ size: '1280*720' }, 400, 'size'],
    [{ size: '4000x720' }, 400, 'size'],
    [{ input_reference: 'https://example.com/a.png' }, 400, 'input_reference'],
    [{ input_reference: { image_url: 'a' } }, 400, 'input_reference.image_url'],
    [{ duration: 5 }, 400, 'duration'],
  ];
  for (const [more, status, param] of refused) {
    const heard = await postJson(simulator, path, body('a fox', more));
    t.equal(heard.status, status, JSON.stringify(more));
    t.equal(JSON.parse(heard.text).error.param, param);
  }
  const text = await postForm(simulator, path, [
    ['model', 'sim-video'],
    ['prompt', 'a'],
    ['input_reference', file('a.txt', 'text/plain')],
  ]);
  t.equal(JSON.parse(text.text).error.code, 'unsupported_file_mimetype');
  for (const wish of ['speed=3', 'queued=soon', 'fail']) {
    const odd = await postJson(simulator, path, body(`[[video:${wish}]] a`));
    t.match([odd.status, JSON.parse(odd.text).error.code], [400, 'unknown_fault'], wish);
  }
  t.equal((await get(simulator, path, { method: 'PUT' })).status, 405);
});
