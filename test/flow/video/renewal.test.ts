import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { vendork } from '../../support/media/client-formats.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { ended, make } from '../../support/media/videos.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';
import { fileAnswer, startContent } from './contents.js';

const video = Buffer.from('\0\0\0\x18ftypmp42 and the rest of a video');
const gone = (status: number) =>
  Buffer.from(`HTTP/1.1 ${status} X\r\ncontent-type: application/xml\r\ncontent-length: 7\r\n\r\n<Error>`);
const isOf = (head: string, name: string) => head.startsWith(`GET /v1/${name} `);

/** An upstream that names another file each time it is asked, of which the `served` ones are there. */
const renaming = (served: (number: number) => boolean, status: number) => {
  let named = 0;
  return {
    named: () => named,
    url: (own: string) => `${own}/file-${++named}`,
    answer: ({ head, socket }: { head: string; socket: { write(bytes: Buffer): unknown } }) =>
      socket.write(served(Number(/file-(\d+)/.exec(head)?.[1])) ? fileAnswer(video) : gone(status)),
  };
};

test('a finished video whose address is of no use any more is fetched from the one that its upstream tells then', async (t) => {
  for (const status of [400, 401, 403, 404, 410]) {
    const files = renaming((number) => number === 2, status);
    const stage = await startContent(t, files.answer, { kind: 'generic', url: files.url });
    t.equal(files.named(), 1);
    const heard = await stage.get();
    t.equal(heard.status, 200, `${status}`);
    t.strictSame(heard.bytes, video);
    t.equal(files.named(), 2);
    t.strictSame((await stage.get()).bytes, video, 'the next one is asked there at once');
    t.equal(files.named(), 2);
    t.strictSame(
      stage.contents().map(({ head }) => ['file-1', 'file-2'].find((name) => isOf(head, name))),
      ['file-1', 'file-2', 'file-2'],
    );
  }
});

test('of many that ask for an expired video, one asks the upstream', async (t) => {
  const files = renaming((number) => number === 2, 403);
  const stage = await startContent(t, files.answer, { kind: 'generic', url: files.url });
  const heard = await Promise.all([1, 2, 3, 4, 5].map(() => stage.get()));
  for (const { status, bytes } of heard) t.strictSame([status, bytes], [200, video]);
  t.equal(files.named(), 2);
});

test('a part is asked for again as it was', async (t) => {
  const files = renaming((number) => number === 2, 410);
  const stage = await startContent(t, files.answer, { kind: 'generic', url: files.url });
  const heard = await stage.get({ range: 'bytes=4-7' });
  t.strictSame([heard.status, heard.text], [206, 'ftyp']);
});

test('a video that is gone for good is told so, after its upstream was asked once more', async (t) => {
  const files = renaming(() => false, 410);
  const stage = await startContent(t, files.answer, { kind: 'generic', url: files.url });
  t.equal((await stage.get()).status, 404);
  t.equal(files.named(), 2);
  t.equal(stage.contents().length, 2);
});

test('a server that fails in another way is not taken for one whose address has expired', async (t) => {
  const files = renaming(() => false, 500);
  const stage = await startContent(t, files.answer, { kind: 'generic', url: files.url });
  t.equal((await stage.get()).status, 502);
  t.equal(files.named(), 1);
});

/** An address that was signed until so many seconds from now. */
const until = (seconds: number): string => `Expires=${Math.floor(Date.now() / 1000) + seconds}`;

test('an address that says that it has expired, or soon will, is renewed before its server is asked', async (t) => {
  for (const seconds of [-60, 30]) {
    let named = 0;
    const stage = await startContent(t, ({ socket }) => socket.write(fileAnswer(video)), {
      kind: 'generic',
      url: (own) => `${own}/file-${++named}?${until(named === 1 ? seconds : 3600)}`,
    });
    t.equal(named, 1);
    t.strictSame((await stage.get()).bytes, video);
    t.equal(named, 2);
    t.strictSame((await stage.get()).bytes, video);
    t.equal(named, 2, 'the new one is good');
    t.notOk(stage.contents().some(({ head }) => isOf(head, 'file-1')));
  }
});

test('a client that asks how its task stands is told an address that is good for a while', async (t) => {
  let named = 0;
  const stage = await startContent(t, () => {}, {
    kind: 'generic',
    url: () => `https://files.example.com/file-${++named}?${until(named === 1 ? 30 : 3600)}`,
  });
  const show = async (): Promise<string> => {
    const heard = await ask(stage.gateway, 'GET', `/v1/video/generations/${stage.id}`);
    return heard.text;
  };
  t.match(await show(), /file-2\?/);
  t.match(await show(), /file-2\?/);
  t.equal(named, 2);
});

test('all addresses of a task are renewed together', async (t) => {
  let named = 0;
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    if (head.startsWith('GET ')) named++;
    const at = (name: string) =>
      `https://files.example.com/${name}-${named}?${until(named === 1 ? 30 : 3600)}`;
    const videos = [
      { url: at('a'), watermark_url: at('a-marked') },
      { url: at('b'), watermark_url: at('b-marked') },
    ];
    const data = { task_id: 'theirs', task_status: 'succeed', task_result: { videos } };
    const made = { task_id: 'theirs', task_status: 'submitted' };
    socket.write(jsonAnswer(200, JSON.stringify({ code: 0, data: head.startsWith('GET ') ? data : made })));
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { kind: 'vendork', baseUrl: upstream.url } },
      models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
    }),
  });
  const id = await make(vendork, gateway, 'm', 'a fox');
  const { text } = (await ended(vendork, gateway, id)).heard;
  for (const shown of named === 2 ? [text] : [(await vendork.show(gateway, id)).heard.text]) {
    for (const name of ['a', 'a-marked', 'b', 'b-marked']) t.match(shown, `/${name}-2?`);
    t.notMatch(shown, '-1?');
  }
});

test('an upstream that has no other address than one that expires is not asked for it again and again', async (t) => {
  let asked = 0;
  const address = `https://files.example.com/file?${until(30)}`;
  const stage = await startContent(t, () => {}, {
    kind: 'generic',
    url: () => {
      asked++;
      return address;
    },
  });
  for (let i = 0; i < 5; i++) {
    const { text } = await ask(stage.gateway, 'GET', `/v1/video/generations/${stage.id}`);
    t.match(text, 'files.example.com/file?Expires');
  }
  t.equal(asked, 2);
});

test('an upstream each of whose addresses seems to have expired is asked for one of them a minute', async (t) => {
  let named = 0;
  const stage = await startContent(t, ({ socket }) => socket.write(fileAnswer(video)), {
    kind: 'generic',
    url: (own) => `${own}/file-${++named}?${until(-60)}&x-expires=1e300&X-Amz-Date=NaN&X-Amz-Expires=-1`,
  });
  const show = () => ask(stage.gateway, 'GET', `/v1/video/generations/${stage.id}`);
  await Promise.all([show(), show(), show(), stage.get(), stage.get()]);
  for (let i = 0; i < 3; i++) t.strictSame([(await show()).status, (await stage.get()).bytes], [200, video]);
  t.equal(named, 2);
});
