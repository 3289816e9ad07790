import { type Test, test } from 'tap';
import { compat, generic } from '../../support/media/client-formats.js';
import { ask, type Heard } from '../../support/media/gateway.js';
import { ended, make, startVideos, wires } from '../../support/media/videos.js';

const size = 200_000;

async function start(t: Test, wire: string, prompt = `[[video:bytes=${size}]] a fox`) {
  const stage = await startVideos(t);
  const { gateway } = stage;
  const id = await make(compat, gateway, wire, prompt);
  await ended(compat, gateway, id);
  const get = (headers: Record<string, string> = {}, query = '', method = 'GET'): Promise<Heard> =>
    ask(gateway, method, `/v1/videos/${id}/content${query}`, { headers });
  return { ...stage, id, get, whole: (await get()).bytes };
}

for (const wire of wires) {
  test(`ranges of a video of the ${wire} upstream`, async (t) => {
    const { get, whole } = await start(t, wire);
    t.equal(whole.length, size);
    const parts: readonly (readonly [range: string, first: number, last: number])[] = [
      ['bytes=0-0', 0, 0],
      ['bytes=0-99', 0, 99],
      ['bytes=1000-1999', 1000, 1999],
      ['bytes=100000-', 100_000, size - 1],
      ['bytes=199999-', size - 1, size - 1],
      ['bytes=-1', size - 1, size - 1],
      ['bytes=-500', size - 500, size - 1],
      ['bytes=-999999999', 0, size - 1],
      ['bytes=0-999999999', 0, size - 1],
      ['Bytes=5-9', 5, 9],
      ['bytes= 5-9 ', 5, 9],
    ];
    for (const [range, first, last] of parts) {
      const heard = await get({ range });
      t.equal(heard.status, 206, range);
      t.equal(heard.headers.get('content-range'), `bytes ${first}-${last}/${size}`, range);
      t.equal(heard.headers.get('content-length'), String(last - first + 1), range);
      t.equal(heard.headers.get('content-type'), 'video/mp4');
      t.equal(heard.headers.get('accept-ranges'), 'bytes');
      t.ok(heard.bytes.equals(whole.subarray(first, last + 1)), range);
    }
    for (const range of ['bytes=200000-', 'bytes=200000-200001', 'bytes=-0']) {
      const heard = await get({ range });
      t.equal(heard.status, 416, `${range}: ${heard.text.slice(0, 100)}`);
      t.equal(heard.headers.get('content-range'), `bytes */${size}`, range);
      t.match(heard.json, { error: { code: 'range_not_satisfiable', type: 'invalid_request_error' } });
    }
    for (const range of [
      'bytes=9-5',
      'bytes=a-b',
      'bytes=-',
      'bytes=',
      'lines=1-2',
      'bytes=0-1,5-9',
      'x',
      'bytes=1',
    ]) {
      const heard = await get({ range });
      t.equal(heard.status, 200, range);
      t.equal(heard.headers.get('content-length'), String(size));
      t.ok(heard.bytes.equals(whole));
    }
  });
}

test('conditions: a range of the version at hand, and no bytes for one that is known', async (t) => {
  const { get, whole, id } = await start(t, 'generic');
  const tag = `"${id}-video"`;
  const plain = await get();
  t.equal(plain.headers.get('etag'), tag);
  t.match(plain.headers.get('cache-control'), /private/);
  t.equal((await get({ 'if-none-match': '"other"' })).status, 200);
  for (const value of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
    for (const method of ['GET', 'HEAD']) {
      const heard = await get({ 'if-none-match': value, range: 'bytes=0-9' }, '', method);
      t.equal(heard.status, 304, value);
      t.equal(heard.headers.get('etag'), tag);
      t.equal(heard.bytes.length, 0);
    }
  }
  const part = await get({ range: 'bytes=10-19', 'if-range': tag });
  t.equal(part.status, 206);
  t.ok(part.bytes.equals(whole.subarray(10, 20)));
  for (const value of [`W/${tag}`, '"other"', 'Sat, 29 Oct 1994 19:43:31 GMT']) {
    const heard = await get({ range: 'bytes=10-19', 'if-range': value });
    t.equal(heard.status, 200, value);
    t.equal(heard.bytes.length, size);
  }
});

test('HEAD says what GET would send', async (t) => {
  for (const wire of ['compat', 'generic']) {
    const { get } = await start(t, wire);
    const names = ['content-type', 'content-length', 'etag', 'accept-ranges', 'cache-control'];
    const [head, whole] = [await get({}, '', 'HEAD'), await get()];
    t.equal(head.status, 200);
    t.equal(head.bytes.length, 0);
    for (const name of names) t.equal(head.headers.get(name), whole.headers.get(name), name);
    t.equal((await get({ range: 'bytes=5-9' }, '', 'HEAD')).headers.get('content-length'), String(size));
  }
});

test('variants are those of the upstream, each with its own type and tag', async (t) => {
  const { get, id, simulator, gateway } = await start(t, 'compat', 'a fox');
  for (const [query, variant, type] of [
    ['', 'video', 'video/mp4'],
    ['?variant=', 'video', 'video/mp4'],
    ['?variant=video', 'video', 'video/mp4'],
    ['?variant=thumbnail', 'thumbnail', 'image/webp'],
    ['?variant=spritesheet', 'spritesheet', 'image/jpeg'],
  ] as const) {
    const heard = await get({}, query);
    t.equal(heard.status, 200, query);
    t.equal(heard.headers.get('content-type'), type);
    t.equal(heard.headers.get('etag'), `"${id}-${variant}"`);
    t.equal(heard.headers.get('content-length'), String(heard.bytes.length));
    const target = simulator.lastRequest()?.target ?? '';
    const theirs = await ask({ url: `http://127.0.0.1:${simulator.port}` }, 'GET', target);
    t.ok(theirs.bytes.equals(heard.bytes));
    t.equal((await get({ 'if-none-match': `"${id}-${variant}"` }, query)).status, 304);
    const part = await get({ range: 'bytes=10-29' }, query);
    t.ok(part.bytes.equals(heard.bytes.subarray(10, 30)));
  }
  for (const query of ['?variant=poster', '?variant=Video', '?variant=video%00']) {
    for (const asked of [id, 'video_unknown']) {
      const heard = await ask(gateway, 'GET', `/v1/videos/${asked}/content${query}`);
      t.equal(heard.status, 400, query);
      t.match(heard.json, { error: { code: 'invalid_value', param: 'variant' } });
    }
  }
});

test('an upstream that gives an address has the video alone', async (t) => {
  const { get } = await start(t, 'vendork');
  for (const query of ['?variant=thumbnail', '?variant=spritesheet']) {
    const heard = await get({}, query);
    t.equal(heard.status, 404);
    t.match(heard.json, { error: { code: 'not_found', param: 'variant' } });
  }
});

test('a download that broke off goes on where it ended, and gives the same bytes', async (t) => {
  const { gateway } = await startVideos(t);
  for (const wire of wires) {
    const prompt = `[[video:bytes=2000000]] [[content:reset after=3 times=1]] a fox for ${wire}`;
    const id = await make(generic, gateway, wire, prompt);
    await ended(generic, gateway, id);
    const path = `${gateway.url}/v1/videos/${id}/content`;
    const headers = { authorization: 'Bearer sk-test' };
    const pieces: Buffer[] = [];
    const first = await fetch(path, { headers });
    t.equal(first.headers.get('content-length'), '2000000');
    await t.rejects(async () => {
      for await (const piece of first.body ?? []) pieces.push(Buffer.from(piece as Uint8Array));
    }, 'the connection is cut');
    const begin = Buffer.concat(pieces);
    t.ok(begin.length > 0 && begin.length < 2_000_000, `${begin.length} bytes came`);
    const tag = first.headers.get('etag') ?? '';
    const rest = await ask(gateway, 'GET', `/v1/videos/${id}/content`, {
      headers: { range: `bytes=${begin.length}-`, 'if-range': tag },
    });
    t.equal(rest.status, 206);
    const whole = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.ok(Buffer.concat([begin, rest.bytes]).equals(whole.bytes));
    const own = `/v1/videos/${id}/content`;
    const line = await gateway.line((line) => line.outcome === 'upstream_error' && line.path === own);
    t.match(line, { status: 200 });
  }
});
