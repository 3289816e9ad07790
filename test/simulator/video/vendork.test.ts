import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { get, postJson } from '../media-ask.js';

const text = '/vendork/v1/videos/text2video';
const image = '/vendork/v1/videos/image2video';
const body = (prompt: string, more: object = {}): object => ({ model_name: 'sim-video', prompt, ...more });
const now = '[[video:queued=0 running=0]] a fox';

test('a task is made and completes in the native envelope', async (t) => {
  const simulator = await simulate(t);
  const heard = await postJson(simulator, text, body(now, { external_task_id: 'mine/1' }));
  t.equal(heard.status, 200);
  const made = JSON.parse(heard.text);
  t.match(made, {
    code: 0,
    message: 'SUCCEED',
    request_id: String,
    data: {
      task_id: String,
      task_status: 'submitted',
      task_info: { external_task_id: 'mine/1' },
      created_at: Number,
      updated_at: Number,
    },
  });
  t.ok(made.data.created_at > 1_000_000_000_000, 'milliseconds');
  const id = made.data.task_id;
  const shown = JSON.parse((await get(simulator, `${text}/${id}`)).text);
  t.match(shown, {
    code: 0,
    data: {
      task_id: id,
      task_status: 'succeed',
      task_status_msg: '',
      task_info: { external_task_id: 'mine/1' },
      task_result: { videos: [{ id: String, url: /\.mp4$/, duration: '5.0' }] },
      created_at: made.data.created_at,
    },
  });
  const { url } = shown.data.task_result.videos[0];
  t.equal((await get(simulator, url, { method: 'HEAD' })).headers.get('content-type'), 'video/mp4');
  const named = JSON.parse((await get(simulator, `${text}/mine%2F1`)).text);
  t.equal(named.data.task_id, id, 'by the name of its maker too');
  const again = await postJson(simulator, text, body(now, { external_task_id: 'mine/1' }));
  t.match([again.status, JSON.parse(again.text).code], [400, 1201]);
  t.strictSame([simulator.state().videosMade, simulator.state().polls], [1, 2]);
  const second = await simulate(t);
  t.equal(JSON.parse((await get(second, `${text}/${id}`)).text).data.task_status, 'succeed');
});

test('statuses and failures have the native words', async (t) => {
  const simulator = await simulate(t);
  const stateOf = async (wish: string): Promise<object> => {
    const made = JSON.parse((await postJson(simulator, text, body(`[[video:${wish}]] a fox`))).text);
    return JSON.parse((await get(simulator, `${text}/${made.data.task_id}`)).text);
  };
  t.match(await stateOf('queued=3600000'), { data: { task_status: 'submitted', task_result: {} } });
  t.match(await stateOf('queued=0 running=3600000'), { data: { task_status: 'processing' } });
  const failed = { task_status: 'failed', task_status_msg: /content policy/, task_result: {} };
  t.match(await stateOf('queued=0 running=0 fail=content_policy'), { code: 0, data: failed });
});

test('a video from an image needs one, as an address or as bare base64', async (t) => {
  const simulator = await simulate(t);
  for (const [more, status] of [
    [{}, 400],
    [{ image: '' }, 400],
    [{ image: 'data:image/png;base64,AAAA' }, 400],
    [{ image: 'AAAA' }, 200],
    [{ image: 'https://example.com/a.png' }, 200],
    [{ image_tail: 'AAAA' }, 200],
    [{ image: 'AAAA', prompt: undefined }, 200],
  ] as const) {
    const heard = await postJson(simulator, image, body(now, more));
    t.equal(heard.status, status, JSON.stringify(more));
  }
  const made = JSON.parse((await postJson(simulator, image, body(now, { image: 'AAAA' }))).text);
  t.equal((await get(simulator, `${image}/${made.data.task_id}`)).status, 200);
  t.equal((await get(simulator, `${text}/${made.data.task_id}`)).status, 404, 'each path has its own tasks');
});

test('what the real one refuses is refused with its number', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly (object | string)[] = [
    body('a', { model_name: undefined }),
    body('a', { model_name: 'nope' }),
    { model: 'sim-video', prompt: 'a' },
    body(''),
    body('x'.repeat(2501)),
    body('a', { negative_prompt: 5 }),
    body('a', { cfg_scale: 2 }),
    body('a', { mode: 'fast' }),
    body('a', { aspect_ratio: '4:3' }),
    body('a', { duration: 5 }),
    body('a', { duration: '7' }),
    body('a', { callback_url: 'here' }),
    body('a', { camera_control: { type: 'spin' } }),
    body('a', { camera_control: { type: 'simple', config: { pan: 1, tilt: 1 } } }),
    body('a', { camera_control: { type: 'simple', config: { pan: 11 } } }),
  ];
  for (const sent of refused) {
    const heard = await postJson(simulator, text, sent);
    t.equal(heard.status, 400, JSON.stringify(sent).slice(0, 80));
    t.match(JSON.parse(heard.text), { code: 1201, message: String, request_id: String });
  }
  t.match(JSON.parse((await postJson(simulator, text, '{')).text), { code: 1200 });
  const camera = { type: 'simple', config: { pan: 5 } };
  const whole = { cfg_scale: 0.5, mode: 'pro', aspect_ratio: '9:16', duration: '10', camera_control: camera };
  t.equal((await postJson(simulator, text, body('a', whole))).status, 200);
  for (const path of [`${text}/k1`, `${text}/%`, '/vendork/v1/nothing']) {
    const heard = await get(simulator, path);
    t.match([heard.status, JSON.parse(heard.text).code], [404, 1203], path);
  }
});

test('faults are worded natively', async (t) => {
  const simulator = await simulate(t);
  const limited = await postJson(simulator, text, body('[[fault:status=429 retry-after=2]] a'));
  t.match([limited.status, JSON.parse(limited.text).code], [429, 1302]);
  const odd = await postJson(simulator, text, body('[[fault:nonsense]] a'));
  t.match([odd.status, JSON.parse(odd.text).code], [400, 1200]);
  t.equal(simulator.state().videosMade, 0);
});
