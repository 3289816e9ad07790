import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Given, get, postJson } from '../media-ask.js';

const submitPath = '/vendorj/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31';
const resultPath = '/vendorj/?Action=CVSync2AsyncGetResult&Version=2022-08-31';
const body = (prompt: string, more: object = {}): object => ({ req_key: 'sim-video', prompt, ...more });

async function taskId(simulator: Simulator, prompt: string, more: object = {}): Promise<string> {
  const heard = await postJson(simulator, submitPath, body(prompt, more));
  return JSON.parse(heard.text).data.task_id;
}

function result(simulator: Simulator, id: string, more: object = {}): Promise<Given> {
  return postJson(simulator, resultPath, { req_key: 'sim-video', task_id: id, ...more });
}

test('a task is made and is done, in the native envelope', async (t) => {
  const simulator = await simulate(t);
  const made = await postJson(simulator, submitPath, body('[[video:queued=0 running=0]] a fox'));
  t.equal(made.status, 200);
  const envelope = {
    code: 10000,
    message: 'Success',
    request_id: String,
    status: 10000,
    time_elapsed: /^[\d.]+ms$/,
  };
  t.match(JSON.parse(made.text), { ...envelope, data: { task_id: String } });
  const id = JSON.parse(made.text).data.task_id;
  const shown = JSON.parse((await result(simulator, id, { req_json: '{"return_url":true}' })).text);
  t.match(shown, {
    ...envelope,
    data: {
      status: 'done',
      video_url: /\.mp4$/,
      binary_data_base64: null,
      image_urls: null,
      resp_data: '',
    },
  });
  const video = await get(simulator, shown.data.video_url, { method: 'HEAD' });
  t.equal(video.headers.get('content-type'), 'video/mp4');
  const second = await simulate(t);
  t.equal(JSON.parse((await result(second, id)).text).data.status, 'done');
  t.strictSame([simulator.state().videosMade, simulator.state().polls], [1, 1]);
});

test('statuses have the native words, and an unknown task is one of them', async (t) => {
  const simulator = await simulate(t);
  const statusOf = async (id: string): Promise<unknown> => {
    const heard = await result(simulator, id);
    t.equal(heard.status, 200);
    const { data } = JSON.parse(heard.text);
    t.equal(data.video_url, '');
    return data.status;
  };
  t.equal(await statusOf(await taskId(simulator, '[[video:queued=3600000]] a')), 'in_queue');
  t.equal(await statusOf(await taskId(simulator, '[[video:queued=0 running=3600000]] a')), 'generating');
  t.equal(await statusOf('7392616336519610409'), 'not_found');
});

test('a failed task has a number of its own', async (t) => {
  const simulator = await simulate(t);
  for (const [wish, status, code] of [
    ['fail=content_policy', 400, 50511],
    ['fail=input_policy', 400, 50412],
    ['fail=gpu', 500, 50500],
    ['fail=content_policy http=200', 200, 50511],
  ] as const) {
    const heard = await result(simulator, await taskId(simulator, `[[video:queued=0 running=0 ${wish}]] a`));
    t.equal(heard.status, status, wish);
    t.match(JSON.parse(heard.text), { code, status: code, message: String, data: null, request_id: String });
  }
});

test('what the real one refuses is refused with its number', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly (object | string)[] = [
    '{',
    body('a', { req_key: undefined }),
    body('a', { req_key: 'nope' }),
    body('', {}),
    body('a', { seed: -2 }),
    body('a', { frames: 100 }),
    body('a', { aspect_ratio: '5:4' }),
    body('a', { binary_data_base64: 'AAAA' }),
    body('a', { binary_data_base64: ['data:image/png;base64,AAAA'] }),
    body('a', { image_urls: ['a'] }),
  ];
  for (const sent of refused) {
    const heard = await postJson(simulator, submitPath, sent);
    t.equal(heard.status, 400, JSON.stringify(sent));
    t.match(JSON.parse(heard.text), { code: 50400, message: String, data: null });
  }
  for (const more of [{ task_id: undefined }, { req_key: undefined }, { req_json: '{' }, { req_json: {} }]) {
    const heard = await result(simulator, 'j1', more);
    t.match([heard.status, JSON.parse(heard.text).code], [400, 50400], JSON.stringify(more));
  }
  const images = { binary_data_base64: ['AAAA'], frames: 241, aspect_ratio: '21:9', seed: 5 };
  t.equal((await postJson(simulator, submitPath, body('', images))).status, 200);
});

test('actions and versions are those that there are', async (t) => {
  const simulator = await simulate(t);
  for (const query of [
    '',
    '?Action=CVSync2AsyncSubmitTask',
    '?Version=2022-08-31',
    '?Action=Other&Version=2022-08-31',
    '?Action=CVSync2AsyncSubmitTask&Version=2024-06-06',
  ]) {
    const heard = await postJson(simulator, `/vendorj/${query}`, body('a'));
    t.equal(heard.status, 400, query);
    t.match(JSON.parse(heard.text).ResponseMetadata, { Error: { Code: 'InvalidActionOrVersion' } });
  }
  t.equal((await postJson(simulator, submitPath.replace('/?', '?'), body('a'))).status, 200);
});

test('faults are worded natively', async (t) => {
  const simulator = await simulate(t);
  const limited = await postJson(simulator, submitPath, body('[[fault:status=429]] a'));
  t.match([limited.status, JSON.parse(limited.text).code], [429, 50429]);
  const later = await result(simulator, await taskId(simulator, '[[poll:status=500]] a'));
  t.match([later.status, JSON.parse(later.text).code], [500, 50500]);
});
