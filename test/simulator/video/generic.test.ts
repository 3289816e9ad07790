import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { get, originOf, postJson } from '../media-ask.js';

const path = '/v1/video/generations';
const body = (prompt: string, more: object = {}): object => ({
  model: 'sim-video',
  prompt,
  duration: 1,
  width: 64,
  height: 48,
  fps: 10,
  ...more,
});

test('a task completes with an address and what the video is', async (t) => {
  const simulator = await simulate(t);
  const made = await postJson(simulator, path, body('[[video:queued=0 running=0]] a fox', { seed: 7 }));
  t.equal(made.status, 200);
  const { task_id: id } = JSON.parse(made.text);
  const shown = JSON.parse((await get(simulator, `${path}/${id}`)).text);
  t.match(shown, {
    task_id: id,
    status: 'completed',
    url: new RegExp(`^${originOf(simulator)}/__simulator/media/[\\w-]+\\.mp4$`),
    format: 'mp4',
    metadata: { duration: 1, fps: 10, width: 64, height: 48, seed: 7 },
  });
  t.notOk('error' in shown);
  const video = await get(simulator, shown.url);
  t.equal(video.headers.get('content-type'), 'video/mp4');
  t.equal(video.bytes.toString('latin1', 4, 8), 'ftyp');
  const second = await simulate(t);
  t.match(JSON.parse((await get(second, `${path}/${id}`)).text), { status: 'completed' });
  t.strictSame([simulator.state().videosMade, simulator.state().polls], [1, 1]);
});

test('before its end it has a status and nothing else', async (t) => {
  const simulator = await simulate(t);
  const made = await postJson(simulator, path, body('[[video:queued=3600000]] a fox'));
  const queued = JSON.parse(made.text);
  t.strictSame(queued, { task_id: queued.task_id, status: 'queued' });
  t.strictSame(JSON.parse((await get(simulator, `${path}/${queued.task_id}`)).text), queued);
  const running = JSON.parse(
    (await postJson(simulator, path, body('[[video:queued=0 running=3600000]] a fox'))).text,
  );
  const shown = JSON.parse((await get(simulator, `${path}/${running.task_id}`)).text);
  t.strictSame(shown, { task_id: running.task_id, status: 'in_progress' });
});

test('a failed one has a number and a message', async (t) => {
  const simulator = await simulate(t);
  for (const [word, code] of [
    ['content_policy', 400],
    ['gpu', 500],
  ]) {
    const prompt = `[[video:queued=0 running=0 fail=${word}]] a fox`;
    const { task_id: id } = JSON.parse((await postJson(simulator, path, body(prompt))).text);
    const shown = JSON.parse((await get(simulator, `${path}/${id}`)).text);
    t.match(shown, { status: 'failed', error: { code, message: String } });
    t.notOk('url' in shown);
  }
});

test('what cannot be made is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [{ model: undefined }, 400, 'model'],
    [{ model: 'nope' }, 404, 'model'],
    [{ prompt: undefined }, 400, 'prompt'],
    [{ duration: '5' }, 400, 'duration'],
    [{ duration: 61 }, 400, 'duration'],
    [{ width: 64.5 }, 400, 'width'],
    [{ height: 5000 }, 400, 'height'],
    [{ fps: 0 }, 400, 'fps'],
    [{ image: 'no image' }, 400, 'image'],
    [{ n: 2 }, 400, 'n'],
    [{ metadata: [] }, 400, 'metadata'],
  ];
  for (const [more, status, param] of refused) {
    const heard = await postJson(simulator, path, body('a fox', more));
    t.equal(heard.status, status, JSON.stringify(more));
    t.equal(JSON.parse(heard.text).error.param, param);
  }
  for (const image of ['https://example.com/a.png', 'data:image/png;base64,AAAA', 'AAAA']) {
    t.equal((await postJson(simulator, path, body('a fox', { image }))).status, 200, image);
  }
  const unknown = await get(simulator, `${path}/task_1`);
  t.match([unknown.status, JSON.parse(unknown.text).error.code], [404, 'task_not_found']);
  t.equal(simulator.state().polls, 0);
});

test('faults of the poll and of the address are asked for when the task is made', async (t) => {
  const simulator = await simulate(t);
  const prompt = '[[poll:status=502 html]] [[video:queued=0 running=0]] a fox';
  const { task_id: id } = JSON.parse((await postJson(simulator, path, body(prompt))).text);
  const page = await get(simulator, `${path}/${id}`);
  t.match([page.status, page.text], [502, /<html>/]);
  const other = '[[content:close after=1]] [[video:queued=0 running=0 bytes=3000000]] a fox';
  const task = JSON.parse((await postJson(simulator, path, body(other))).text);
  const { url } = JSON.parse((await get(simulator, `${path}/${task.task_id}`)).text);
  await t.rejects(get(simulator, url), 'the connection ends inside of the body');
});
