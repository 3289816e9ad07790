import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { createStore } from '../../../src/store/create.js';
import { advance, submitted } from '../../../src/video/advance.js';
import { submissionHere, TaskBook } from '../../../src/video/book.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { mediaConfig } from '../../support/media/gateway.js';
import { ended, make } from '../../support/media/videos.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';
import { sampleTask, update } from '../../video/samples.js';
import { type ContentOptions, fileAnswer, startContent } from './contents.js';

/** Of several pieces. */
const video = Buffer.alloc(700_000, '\0\0\0\x18ftypmp42 and the rest of a video');

type Answer = Parameters<typeof startContent>[1];

async function startKeeping(
  t: Test,
  answer: Answer,
  { videos = {}, ...options }: ContentOptions & { readonly videos?: object } = {},
) {
  const folder = join(temporaryFolder(t), 'videos');
  const config = { ...options.config, videos: { folder, ...videos } };
  const stage = await startContent(t, answer, { ...options, config });
  const names = (): readonly string[] => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  };
  const isKept = () => names().some((name) => name.startsWith('video_'));
  return { ...stage, names, isKept };
}

for (const kind of ['chat', 'generic'] as const) {
  test(`${kind}: a video is fetched once when its task ends, and served from the folder`, async (t) => {
    const stage = await startKeeping(t, ({ socket }) => socket.write(fileAnswer(video)), { kind });
    await eventually(stage.isKept);
    t.strictSame(stage.names(), [`${stage.id}.mp4`]);
    const whole = await stage.get();
    t.equal(whole.status, 200);
    t.ok(whole.bytes.equals(video));
    t.match(Object.fromEntries(whole.headers), {
      'content-type': 'video/mp4',
      'content-length': `${video.length}`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
    });
    const part = await stage.get({ range: 'bytes=300000-599999' });
    t.equal(part.status, 206);
    t.equal(part.headers.get('content-range'), `bytes 300000-599999/${video.length}`);
    t.ok(part.bytes.equals(video.subarray(300_000, 600_000)));
    const last = await stage.get({ range: 'bytes=-7' });
    t.ok(last.bytes.equals(video.subarray(-7)));
    const head = await stage.get({}, { method: 'HEAD' });
    t.strictSame([head.status, head.headers.get('content-length')], [200, `${video.length}`]);
    const beyond = await stage.get({ range: `bytes=${video.length}-` });
    t.strictSame([beyond.status, beyond.headers.get('content-range')], [416, `bytes */${video.length}`]);
    t.equal((await stage.get({ 'if-none-match': whole.headers.get('etag') ?? '' })).status, 304);
    t.equal((await stage.get({ range: 'bytes=0-1', 'if-range': '"another"' })).status, 200);
    t.equal(stage.contents().length, 1, 'the upstream was asked once');
  });
}

test('a kept video is served though its upstream has lost it, and to its key alone', async (t) => {
  let isLost = false;
  const stage = await startKeeping(t, ({ socket }) => {
    socket.write(isLost ? fileAnswer(Buffer.from('{}'), 404) : fileAnswer(video));
  });
  await eventually(stage.isKept);
  isLost = true;
  t.ok((await stage.get()).bytes.equals(video));
  t.equal((await stage.get({}, { key: 'sk-stranger' })).status, 404);
  t.equal((await stage.get({}, { key: null })).status, 401);
});

test('for a kept video its upstream is not asked for another address, be the one that it has told expired', async (t) => {
  let named = 0;
  const expired = Math.floor(Date.now() / 1000) - 60;
  const stage = await startKeeping(t, ({ socket }) => socket.write(fileAnswer(video)), {
    kind: 'generic',
    url: (own) => `${own}/file-${++named}?Expires=${expired}`,
  });
  await eventually(stage.isKept);
  const before = named;
  const whole = await stage.get();
  t.ok(whole.bytes.equals(video));
  t.equal((await stage.get({ 'if-none-match': whole.headers.get('etag') ?? '' })).status, 304);
  t.equal(named, before);
});

test('of a kept video, what is no video itself comes from the upstream', async (t) => {
  const stage = await startKeeping(t, ({ socket }) => socket.write(fileAnswer(video)));
  await eventually(stage.isKept);
  const path = `${stage.path}?variant=thumbnail`;
  const heard = await fetch(stage.gateway.url + path, { headers: { authorization: 'Bearer sk-test' } });
  await heard.arrayBuffer();
  t.equal(stage.contents().length, 2);
  t.match(stage.contents()[1]?.head, 'variant=thumbnail');
});

test('a redirect is followed to the video that is kept', async (t) => {
  const stage = await startKeeping(t, ({ head, socket }) => {
    const isMoved = head.includes('/moved');
    const found = 'HTTP/1.1 302 Found\r\nlocation: /moved\r\ncontent-length: 0\r\n\r\n';
    socket.write(isMoved ? fileAnswer(video) : found);
  });
  await eventually(stage.isKept);
  t.ok((await stage.get()).bytes.equals(video));
});

test('what is not a whole video is not kept, and asked for anew by whoever wants it', async (t) => {
  const page = fileAnswer(Buffer.from(`<html>${' '.repeat(300)}`));
  const half = fileAnswer(video).subarray(0, 200_000);
  const answers: Readonly<Record<string, Answer>> = {
    page: ({ socket }) => socket.write(page),
    'an error': ({ socket }) => socket.write(fileAnswer(Buffer.from('{"error":{}}'), 500)),
    half: ({ socket }) => socket.end(half),
  };
  for (const [name, answer] of Object.entries(answers)) {
    let isWell = false;
    const stage = await startKeeping(t, (request, index) => {
      if (isWell) request.socket.write(fileAnswer(video));
      else answer(request, index);
    });
    await eventually(() => stage.contents().length > 0 && stage.names().length === 0);
    t.notOk(stage.isKept(), name);
    isWell = true;
    await eventually(stage.isKept);
    t.ok((await stage.get()).bytes.equals(video), `${name}: it is tried again`);
  }
});

test('of what may have broken off unseen, nothing is kept', async (t) => {
  const endless = Buffer.concat([Buffer.from('HTTP/1.1 200 X\r\ncontent-type: video/mp4\r\n\r\n'), video]);
  const stage = await startKeeping(t, ({ socket }) => socket.end(endless));
  await stage.gateway.line(({ msg }) => msg === 'could not keep a video');
  t.strictSame(stage.names(), []);
  t.ok((await stage.get()).bytes.equals(video));
});

test('a video that does not come to its end in time is given up, though pieces of it keep coming', async (t) => {
  const beginning = fileAnswer(video).subarray(0, 100_000);
  const sockets: Socket[] = [];
  let isWell = false;
  const stage = await startKeeping(
    t,
    ({ socket }) => {
      if (isWell) {
        socket.write(fileAnswer(video));
        return;
      }
      sockets.push(socket);
      socket.write(beginning);
    },
    { keepVideoMs: 2000 },
  );
  const drip = setInterval(() => {
    for (const socket of sockets) if (!socket.destroyed) socket.write('.');
  }, 50);
  t.teardown(() => clearInterval(drip));
  const { err } = await stage.gateway.line(({ msg }) => msg === 'could not keep a video');
  t.match(err, { code: 'upstream_timeout' });
  await eventually(() => stage.names().length === 0);
  await eventually(() => sockets.every((socket) => socket.destroyed));
  isWell = true;
  t.ok((await stage.get()).bytes.equals(video), 'whoever wants it has it from the upstream');
});

test('upstreams whose videos do not come hold up those of no other', async (t) => {
  const folder = join(temporaryFolder(t), 'videos');
  const asked: string[] = [];
  const upstreamOf = (name: string, isWell: boolean) =>
    startRawUpstream(t, ({ head, socket }) => {
      if (head.startsWith('POST ')) socket.write(jsonAnswer(200, '{"id":"theirs"}'));
      else if (!head.includes('/content'))
        socket.write(jsonAnswer(200, '{"id":"theirs","status":"completed"}'));
      else {
        asked.push(name);
        if (isWell) socket.write(fileAnswer(video));
      }
    });
  const hung = ['hung-1', 'hung-2', 'hung-3', 'hung-4', 'hung-5'];
  const names = [...hung, 'well'];
  const urls = await Promise.all(names.map(async (name) => (await upstreamOf(name, name === 'well')).url));
  // Another upstream at the place of the first one.
  names.push('beside');
  urls.push(urls[0] ?? '');
  const ofEach = <T>(of: (name: string, index: number) => T): Record<string, T> =>
    Object.fromEntries(names.map((name, index) => [name, of(name, index)]));
  const upstreams = ofEach((_, index) => ({ kind: 'chat', baseUrl: urls[index] }));
  const models = ofEach((upstream) => ({ protocols: ['video'], targets: [{ upstream, model: 'real' }] }));
  const config = mediaConfig(t, { upstreams, models, config: { videos: { folder } } });
  const gateway = await startGateway(t, { config });
  const makeOf = async (model: string): Promise<string> => {
    const id = await make(compat, gateway, model, 'a fox');
    await ended(compat, gateway, id);
    return id;
  };
  for (const model of [...hung, ...hung, ...hung, 'beside']) await makeOf(model);
  const id = await makeOf('well');
  await eventually(() => readdirSync(folder).includes(`${id}.mp4`));
  await eventually(() => asked.length > 2 * hung.length);
  t.strictSame(asked.toSorted(), [...hung, ...hung, 'well'].sort(), 'two of each place at a time');
});

test('a video of a type that the folder would tell as another is not kept', async (t) => {
  const other = Buffer.from(
    fileAnswer(video).toString('latin1').replace('video/mp4', 'video/x-matroska'),
    'latin1',
  );
  const stage = await startKeeping(t, ({ socket }) => socket.write(other));
  await stage.gateway.line(({ msg }) => msg === 'could not keep a video');
  t.equal((await stage.get()).headers.get('content-type'), 'video/x-matroska');
  t.strictSame(stage.names(), []);
});

test('where the folder cannot be read, a video comes from its upstream', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  const stage = await startKeeping(t, ({ socket }) => socket.write(fileAnswer(video)), {
    videos: { folder: join(file, 'videos') },
  });
  const heard = await stage.get();
  t.equal(heard.status, 200);
  t.ok(heard.bytes.equals(video));
  await stage.gateway.line(({ msg }) => msg === 'internal error');
});

test('a video that is too large is not fetched, but passed on', async (t) => {
  const stage = await startKeeping(t, ({ socket }) => socket.write(fileAnswer(video)), {
    videos: { fileBytes: video.length - 1 },
  });
  await stage.gateway.line(({ msg }) => msg === 'could not keep a video');
  t.strictSame(stage.names(), []);
  t.ok((await stage.get()).bytes.equals(video));
  t.equal(stage.contents().length, 2);
});

/** The tasks of a store, as another process sees them. */
function bookAt(t: Test, path: string) {
  const store = createStore({ kind: 'embedded', path, taskDays: 7 });
  t.teardown(() => store.close());
  return new TaskBook(store);
}

test('a video whose end was written by somebody who did not hear of it is kept by one of all', async (t) => {
  const [folder, storePath] = [join(temporaryFolder(t), 'videos'), temporaryFolder(t)];
  let contents = 0;
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    const isContent = head.includes('/content');
    contents += Number(isContent);
    socket.write(isContent ? fileAnswer(video) : jsonAnswer(500, '{}'));
  });
  const config = mediaConfig(t, {
    upstreams: { u: { baseUrl: upstream.url } },
    models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
    config: { videos: { folder } },
    storePath,
  });
  await Promise.all([startGateway(t, { config }), startGateway(t, { config })]);
  const [book, now] = [bookAt(t, storePath), Date.now()];
  const id = `video_${'a'.repeat(32)}`;
  const times = { createdAt: now, updatedAt: now, expiresAt: now + 3_600_000 };
  const task = sampleTask({ id, model: 'm', ...times });
  const made = submitted(
    { ...task, upstream: { ...task.upstream, name: 'u' } },
    { id: 'theirs', update: null },
    now,
  );
  await book.open(task, submissionHere(id, 60_000), null);
  await book.recordSubmission(made);
  const booked = await book.find(id);
  t.ok(booked !== null && (await book.update(booked, (known) => advance(known, update('completed'), now))));
  await eventually(() => existsSync(join(folder, `${id}.mp4`)));
  await eventually(async () => (await book.underWay(1, null)).ids.length === 0);
  t.equal(contents, 1);
});

test('a video that was being fetched when its process ended is found by the next one', async (t) => {
  const storePath = temporaryFolder(t);
  const stage = await startKeeping(t, () => {}, { config: { store: { kind: 'embedded', path: storePath } } });
  await eventually(() => stage.contents().length === 1);
  await stage.gateway.gateway.close();
  t.strictSame((await bookAt(t, storePath).underWay(2, null)).ids, [stage.id]);
});

test('the upstream is asked for another address of a video whose own has expired before it was kept', async (t) => {
  let named = 0;
  const stage = await startKeeping(
    t,
    ({ head, socket }) => {
      const isThere = head.includes('/file-2');
      socket.write(isThere ? fileAnswer(video) : fileAnswer(Buffer.from('<Error>'), 403));
    },
    { kind: 'generic', url: (own) => `${own}/file-${++named}` },
  );
  await eventually(stage.isKept);
  t.ok((await stage.get()).bytes.equals(video));
  t.equal(named, 2);
});
