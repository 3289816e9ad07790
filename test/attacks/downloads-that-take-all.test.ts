import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway, testKey } from '../support/gateway.js';
import { compat } from '../support/media/client-formats.js';
import { ask, mateKey, mediaConfig } from '../support/media/gateway.js';
import { open } from '../support/raw-client.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';

const finished = JSON.stringify({ id: 'theirs', object: 'video', status: 'completed', seconds: '4' });
/** An answer whose end never comes. */
const endless = `HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 1073741824\r\n\r\n${'\u0001'.repeat(64)}`;
const chat = { model: 'c', messages: [{ role: 'user', content: 'hi' }] };

type Content = (request: RawRequest) => void;

/** A gateway with a video and a chat model at one upstream of eight connections, and a finished video of `testKey`. */
async function start(
  t: Test,
  options: {
    readonly content?: Content;
    readonly upstream?: object;
    readonly limits?: object;
    readonly group?: object;
  } = {},
) {
  const { content = ({ socket }) => socket.write(endless) } = options;
  const upstream = await startRawUpstream(t, (request) => {
    const { head, socket } = request;
    if (head.includes('/content')) content(request);
    else socket.write(jsonAnswer(200, head.includes('/chat/') ? completion : finished));
  });
  const limits = options.limits === undefined ? {} : { limits: options.limits };
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url, maxConnections: 8, ...options.upstream } },
      models: {
        m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'v' }] },
        c: { protocols: ['chat'], targets: [{ upstream: 'u', model: 'c' }] },
      },
      config: {
        groups: { default: { models: ['*'], shareVideos: true, ...options.group } },
        keys: [
          { id: 'test', hash: hashKey(testKey), groups: ['default'], ...limits },
          { id: 'mate', hash: hashKey(mateKey), groups: ['default'] },
        ],
      },
    }),
  });
  const id = compat.idOf(await compat.create(gateway, { model: 'm', prompt: 'a fox' }));
  const download = (key = testKey) => begin(gateway, id, key);
  const say = (key = testKey) =>
    ask(gateway, 'POST', '/v1/chat/completions', { body: chat, key }).then(({ status }) => status);
  return { gateway, upstream, id, download, say };
}

interface Download {
  readonly status: number;
  readonly text: string;
  readonly socket: Socket;
}

/** Asks for a video, and reads no more of the answer than what comes first. */
async function begin({ port }: RunningGateway, id: string, key: string): Promise<Download> {
  const socket = await open(
    port,
    `GET /v1/videos/${id}/content HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`,
  );
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  const text = first.toString('latin1');
  return { status: Number(text.slice(9, 12)), text, socket };
}

async function many(count: number, download: () => Promise<Download>): Promise<Download[]> {
  const all: Download[] = [];
  for (let i = 0; i < count; i++) all.push(await download());
  return all;
}

const statuses = (downloads: readonly Download[]) => downloads.map(({ status }) => status);
const end = (downloads: readonly Download[]) => {
  for (const { socket } of downloads) socket.destroy();
};

test('downloads that nobody reads leave other keys most connections to the upstream', async (t) => {
  const { download, say } = await start(t);
  const first = await many(8, download);
  t.strictSame(statuses(first), [200, 200, 429, 429, 429, 429, 429, 429], 'a quarter of eight');
  const { text = '' } = first[2] ?? {};
  t.match(text, /rate_limit_exceeded/);
  t.match(text, /2 downloads/);
  t.match(text, /retry-after: \d/);
  t.equal(await say(mateKey), 200);
  const others = await many(3, () => download(mateKey));
  t.strictSame(statuses(others), [200, 200, 429], 'another key has its own');
  t.equal(await say(mateKey), 200);
  end([...first, ...others]);
  await eventually(
    async () => {
      const again = await download();
      if (again.status !== 200) again.socket.destroy();
      else t.teardown(() => again.socket.destroy());
      return again.status === 200;
    },
    { everyMs: 5 },
  );
});

test('an upstream of few connections lets a key download one file at a time', async (t) => {
  const { download } = await start(t, { upstream: { maxConnections: 3 } });
  const all = await many(2, download);
  t.strictSame(statuses(all), [200, 429]);
  end(all);
});

test('an answer to HEAD, one that is no video, and one that ends take up nothing', async (t) => {
  const answers = [
    endless,
    jsonAnswer(404, '{}'),
    jsonAnswer(200, '{"error":"none"}'),
    'HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 4\r\n\r\n\u0001\u0002\u0003\u0004',
    'HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 9\r\n\r\n',
  ];
  let next = '';
  const { gateway, id, download } = await start(t, {
    content: ({ socket }) => {
      if (next === answers[4]) socket.end(next);
      else socket.write(next);
    },
    upstream: { maxConnections: 4 },
  });
  for (let round = 0; round < 3; round++) {
    for (const [index, text] of answers.entries()) {
      next = text;
      const method = index === 0 ? 'HEAD' : 'GET';
      const status = await ask(gateway, method, `/v1/videos/${id}/content`).then(
        (heard) => heard.status,
        () => 0,
      );
      t.not(status, 429, `${round} ${index}`);
    }
  }
  next = endless;
  const last = await many(2, download);
  t.strictSame(statuses(last), [200, 429]);
  end(last);
});

test('a redirect leads away from the upstream, whose connections are free again', async (t) => {
  const files = await startRawUpstream(t, ({ socket }) => socket.write(endless));
  const { download, say } = await start(t, {
    content: ({ socket }) =>
      socket.write(
        `HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:${files.port}/file\r\ncontent-length: 0\r\n\r\n`,
      ),
    upstream: { maxConnections: 4, fetchPrivate: true },
  });
  const all = await many(3, download);
  t.strictSame(statuses(all), [200, 200, 200]);
  t.equal(await say(mateKey), 200);
  end(all);
});

for (const whose of ['key', 'group'] as const) {
  test(`a download is one of the calls that a ${whose} may have at once, and no request`, async (t) => {
    const limits = { concurrent: 1, requestsPerMinute: 4 };
    const { download, say } = await start(t, whose === 'key' ? { limits } : { group: { limits } });
    for (let round = 0; round < 5; round++) {
      const own = await eventually(download, { fits: ({ status }) => status === 200, everyMs: 5 });
      const second = await download();
      t.equal(second.status, 429);
      t.match(second.text, /calls at once/);
      if (round === 0) t.equal(await say(), 429);
      end([own, second]);
    }
    const status = await eventually(say, { fits: (seen) => seen === 200, everyMs: 5 });
    t.equal(status, 200);
  });
}
