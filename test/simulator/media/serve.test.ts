import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, get as request } from 'node:http';
import { test } from 'tap';
import { patternBytes } from '../../../src/simulator/media/file.js';
import type { Simulator } from '../../../src/simulator/server.js';
import { eventually } from '../../support/eventually.js';
import { simulate } from '../../support/simulator.js';
import { get, originOf, postJson } from '../media-ask.js';

/** Path of the content of a task that is completed. */
async function contentPath(simulator: Simulator, wish: string): Promise<string> {
  const prompt = `[[video:queued=0 running=0 ${wish}]] a fox`;
  const body = { model: 'sim-video', prompt, seconds: '1', size: '64x48' };
  return `/v1/videos/${JSON.parse((await postJson(simulator, '/v1/videos', body)).text).id}/content`;
}

function pattern(from: number, to: number): Buffer {
  return Buffer.concat([...patternBytes({ from, to })]);
}

test('ranges are parts of the whole', async (t) => {
  const simulator = await simulate(t);
  const path = await contentPath(simulator, '');
  const whole = await get(simulator, path);
  const size = whole.bytes.length;
  t.equal(whole.headers.get('content-length'), String(size));
  t.equal(whole.headers.get('accept-ranges'), 'bytes');
  for (const [range, from, to] of [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=100-', 100, size],
    ['bytes=-7', size - 7, size],
    [`bytes=-${size + 5}`, 0, size],
    [`bytes=5-${size + 5}`, 5, size],
  ] as const) {
    const part = await get(simulator, path, { headers: { range } });
    t.equal(part.status, 206, range);
    t.equal(part.headers.get('content-range'), `bytes ${from}-${to - 1}/${size}`);
    t.ok(part.bytes.equals(whole.bytes.subarray(from, to)));
  }
  for (const range of ['bytes=5-2', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=-', 'bytes=a-b']) {
    const all = await get(simulator, path, { headers: { range } });
    t.match([all.status, all.bytes.length], [200, size], range);
  }
  for (const range of [`bytes=${size}-`, 'bytes=-0']) {
    const none = await get(simulator, path, { headers: { range } });
    t.match([none.status, none.headers.get('content-range')], [416, `bytes */${size}`], range);
  }
});

test('conditions and HEAD', async (t) => {
  const simulator = await simulate(t);
  const path = await contentPath(simulator, '');
  const head = await get(simulator, path, { method: 'HEAD' });
  t.match([head.status, head.bytes.length], [200, 0]);
  const etag = head.headers.get('etag') ?? '';
  t.match(etag, /^"[0-9a-f]+"$/);
  t.ok(Number(head.headers.get('content-length')) > 0);
  for (const tags of [etag, `"other", W/${etag}`, '*']) {
    const same = await get(simulator, path, { headers: { 'if-none-match': tags } });
    t.match([same.status, same.bytes.length, same.headers.get('etag')], [304, 0, etag]);
  }
  t.equal((await get(simulator, path, { headers: { 'if-none-match': '"other"' } })).status, 200);
  const range = 'bytes=0-9';
  t.equal((await get(simulator, path, { headers: { range, 'if-range': etag } })).status, 206);
  t.equal((await get(simulator, path, { headers: { range, 'if-range': '"other"' } })).status, 200);
  const part = await get(simulator, path, { method: 'HEAD', headers: { range } });
  t.match([part.status, part.headers.get('content-length')], [206, '10']);
});

test('a video of noise has any size, and any part of it is the same as in the whole', async (t) => {
  const simulator = await simulate(t);
  const size = 5 * 1024 * 1024 + 17;
  const path = await contentPath(simulator, `bytes=${size}`);
  const whole = await get(simulator, path);
  t.equal(whole.headers.get('content-type'), 'video/mp4');
  t.ok(whole.bytes.equals(pattern(0, size)));
  for (const [from, to] of [
    [1_048_570, 1_048_590],
    [3, 2_097_153],
    [1_048_580, 4_000_000],
    [size - 1, size],
  ] as const) {
    const part = await get(simulator, path, { headers: { range: `bytes=${from}-${to - 1}` } });
    t.ok(part.bytes.equals(whole.bytes.subarray(from, to)), `${from} to ${to}`);
    t.ok(part.bytes.equals(pattern(from, to)));
  }
  const megabyte = (at: number): string =>
    createHash('sha256')
      .update(whole.bytes.subarray(at, at + 1_048_576))
      .digest('hex');
  t.not(megabyte(0), megabyte(1_048_576), 'no megabyte is like another');
});

test('the middle of a huge one comes at once, and a reader that leaves ends it', async (t) => {
  const simulator = await simulate(t);
  const size = 2 ** 41;
  const path = await contentPath(simulator, `bytes=${size}`);
  const from = 2 ** 40 - 5;
  const part = await get(simulator, path, { headers: { range: `bytes=${from}-${from + 9}` } });
  t.equal(part.headers.get('content-range'), `bytes ${from}-${from + 9}/${size}`);
  t.ok(part.bytes.equals(pattern(from, from + 10)));
  const sent = request(originOf(simulator) + path, { agent: false });
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  t.equal(answer.headers['content-length'], String(size));
  await once(answer, 'data');
  answer.destroy();
  await eventually(() => simulator.state().openRequests === 0);
  t.equal(simulator.state().cancelledRequests, 1);
});

test('faults come in the middle of the bytes', async (t) => {
  const simulator = await simulate(t);
  const path = await contentPath(simulator, 'bytes=3000000');
  for (const fault of ['reset after=3', 'close after=3', 'truncate after=3', 'short-body']) {
    const cut = get(simulator, path, { headers: { 'x-simulator-fault': fault } });
    await t.rejects(cut, fault);
  }
  for (const fault of ['error-event after=2', 'wrong-protocol', 'flood megabytes=2', 'silent=0 after=1']) {
    const whole = await get(simulator, path, { headers: { 'x-simulator-fault': fault } });
    t.match(
      [whole.status, whole.bytes.equals(pattern(0, 3_000_000))],
      [200, fault.startsWith('silent')],
      fault,
    );
  }
  const packed = await get(simulator, path, { headers: { 'x-simulator-fault': 'gzip' } });
  t.ok(packed.bytes.equals(pattern(0, 3_000_000)));
  const open = await get(simulator, path, { headers: { 'x-simulator-fault': 'until-close' } });
  t.ok(open.bytes.equals(pattern(0, 3_000_000)));
  t.equal(open.headers.get('content-length'), null);
});

test('addresses that were not given out are 404', async (t) => {
  const simulator = await simulate(t);
  for (const name of ['', 'a', 'a.png', '%00.mp4']) {
    t.equal((await get(simulator, `/__simulator/media/${name}`)).status, 404, name);
  }
  t.equal(simulator.state().polls, 0);
});
