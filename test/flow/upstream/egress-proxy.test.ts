import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { type Test, test } from 'tap';
import { figuresOf } from '../../faults/table/figures.js';
import { authority, clientCertificate, demanding, serverCertificate } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { png } from '../../support/media/images.js';
import { ended, make } from '../../support/media/videos.js';
import { startProxy, type TestProxy, tunnelOpened } from '../../support/proxy.js';
import { chatRequest, exchange, open, readAnswer } from '../../support/raw-client.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';
import { fileOf, formOf, hashOf, model, uploadRequest } from '../../support/upload-form.js';
import {
  type Answer,
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  type RawUpstream,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';

const whole = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';
const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}';
const password = 'password-of-the-proxy';
const basic = Buffer.from(`user:${password}`).toString('base64');

/** The upstream's URL under a name that only the proxy knows. */
const named = (url: string): string => url.replace('127.0.0.1', 'api.hidden.test');

/** How an upstream that wants a certificate is reached through a proxy. */
function wayThrough(proxy: TestProxy): Record<string, unknown> {
  return {
    proxy: proxy.url(`user:${password}`),
    proxyCa: proxy.url().startsWith('https:') ? authority : undefined,
    tls: { ca: authority, ...clientCertificate, serverName: 'localhost' },
  };
}

function startUpstream(t: Test, answer: Answer): Promise<RawUpstream> {
  return startRawUpstream(t, answer, { tls: demanding });
}

interface Stage {
  readonly proxy: TestProxy;
  readonly upstream: RawUpstream;
  readonly gateway: RunningGateway;
}

async function start(
  t: Test,
  answer: Answer,
  proxyTls: typeof serverCertificate | null = null,
): Promise<Stage> {
  const proxy = await startProxy(t, undefined, proxyTls);
  const upstream = await startUpstream(t, answer);
  const gateway = await startGateway(t, {
    upstreams: [named(upstream.url)],
    upstream: wayThrough(proxy),
    protocols: ['chat', 'audio'],
  });
  return { proxy, upstream, gateway };
}

/** Nothing that goes through a tunnel, nor what is logged of it, speaks of the proxy's password. */
function checkKept(t: Test, { upstream, gateway }: Omit<Stage, 'proxy'>): void {
  const { socket } = upstream.requests[0] ?? {};
  t.equal((socket as TLSSocket).getPeerCertificate().subject.CN, 'gateway');
  for (const { head } of upstream.requests) t.notMatch(head, /proxy/i);
  const lines = JSON.stringify(gateway.lines);
  for (const secret of [password, basic]) t.notOk(lines.includes(secret));
}

for (const proxyTls of [null, serverCertificate]) {
  const scheme = proxyTls === null ? 'http' : 'https';

  test(`chat goes whole and streamed through one tunnel of an ${scheme} proxy`, async (t) => {
    const events = [
      chatEvent({ role: 'assistant', content: 'hi' }),
      chatEvent({}, 'stop'),
      usageEvent,
      doneEvent,
    ];
    const stage = await start(
      t,
      ({ body, socket }) =>
        socket.write(
          body.includes('"stream":true')
            ? streamHead + events.map(chunk).join('') + lastChunk
            : jsonAnswer(200, completion),
        ),
      proxyTls,
    );
    for (let i = 0; i < 2; i++) {
      const answer = await exchange(stage.gateway.port, chatRequest(whole));
      t.equal(answer.status, 200, answer.body);
      t.equal(answer.body, completion);
      const stream = await exchange(stage.gateway.port, chatRequest(streamed));
      t.equal(stream.status, 200);
      t.match(stream.body, /"content":"hi"[\s\S]*data: \[DONE\]\n\n$/);
    }
    t.equal(stage.proxy.requests.length, 1);
    t.match(stage.proxy.requests[0]?.head, `proxy-authorization: Basic ${basic}`);
    t.equal(stage.proxy.requests[0]?.target, `api.hidden.test:${stage.upstream.port}`);
    checkKept(t, stage);
  });

  test(`a form of several MiB goes through a tunnel of an ${scheme} proxy`, async (t) => {
    const stage = await start(t, hears, proxyTls);
    const form = formOf([model, fileOf(4 << 20)]);
    const answer = await exchange(stage.gateway.port, uploadRequest(form));
    t.equal(answer.status, 200, answer.body);
    t.equal(hashOf(await (await stage.upstream.request(0)).whole()), hashOf(form));
    checkKept(t, stage);
  });

  test(`a realtime session goes through a tunnel of an ${scheme} proxy`, async (t) => {
    const proxy = await startProxy(t, undefined, proxyTls);
    const upstream = await startRealtimeUpstream(
      t,
      ({ socket }) => socket.on('message', (data: Buffer) => socket.send(data.toString())),
      undefined,
      demanding,
    );
    const { port } = await startGateway(t, {
      upstreams: [named(upstream.url)],
      upstream: wayThrough(proxy),
      protocols: ['realtime'],
    });
    const client = await openClient(t, port);
    const message = JSON.stringify({ type: 'response.create', text: 'x'.repeat(100_000) });
    client.socket.send(message);
    await client.until(1);
    t.equal(client.received[0], message);
    const { request } = await upstream.arrival(0);
    t.equal((request.socket as TLSSocket).getPeerCertificate().subject.CN, 'gateway');
    t.notMatch(request.headers, { 'proxy-authorization': /./ });
    t.equal(proxy.requests.length, 1);
  });
}

test("a video is fetched through its upstream's proxy, from its API and from a URL at its own origin", async (t) => {
  const file = Buffer.alloc(1 << 20, 'film');
  for (const kind of ['chat', 'generic']) {
    const proxy = await startProxy(t);
    const upstream = await startUpstream(t, ({ head, socket }) => {
      const task = {
        id: 'theirs',
        task_id: 'theirs',
        status: 'completed',
        url: `${named(upstream.url)}/file.mp4`,
      };
      const isFile = head.startsWith('GET /v1/file.mp4') || head.startsWith('GET /v1/videos/theirs/content');
      if (!isFile) socket.write(jsonAnswer(200, JSON.stringify(task)));
      else {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: ${file.length}\r\n\r\n`);
        socket.write(file);
      }
    });
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { kind, baseUrl: named(upstream.url), ...wayThrough(proxy) } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
      }),
    });
    const id = await make(compat, gateway, 'm', 'a fox');
    await ended(compat, gateway, id);
    const heard = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.equal(heard.status, 200, heard.text.slice(0, 500));
    t.ok(heard.bytes.equals(file));
    t.strictSame(
      [...new Set(proxy.requests.map(({ target }) => target))],
      [`api.hidden.test:${upstream.port}`],
    );
    checkKept(t, { upstream, gateway });
  }
});

test('an image that an upstream made is fetched at its own origin as the upstream is reached', async (t) => {
  const proxy = await startProxy(t);
  const upstream = await startUpstream(t, ({ head, socket }) => {
    if (!head.startsWith('GET ')) {
      socket.write(jsonAnswer(200, JSON.stringify({ data: [{ url: `${named(upstream.url)}/a.png` }] })));
      return;
    }
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`);
    socket.write(png);
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: named(upstream.url), ...wayThrough(proxy) } },
      models: {
        m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'real', images: 'openai-files' }] },
      },
    }),
  });
  const body = { model: 'm', prompt: 'a fox', response_format: 'b64_json' };
  const heard = await ask(gateway, 'POST', '/v1/images/generations', { body });
  t.equal(heard.status, 200, heard.text);
  t.strictSame(heard.json.data, [{ b64_json: png.toString('base64') }]);
  t.equal(proxy.requests.length, 2);
  checkKept(t, { upstream, gateway });
});

const generated = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
});

test('what a client names by URL goes through the proxy of `fetch` alone', async (t) => {
  const ofUpstream = await startProxy(t);
  const ofFiles = await startProxy(t);
  const files = await startRawUpstream(
    t,
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`),
      png,
    ]),
  );
  const upstream = await startUpstream(t, jsonAnswer(200, generated));
  const gateway = await startGateway(t, {
    upstreams: [`${named(upstream.url).slice(0, -'/v1'.length)}/v1beta`],
    upstream: { kind: 'generateContent', ...wayThrough(ofUpstream) },
    config: {
      fetch: { ports: ['1-65535'], denyHosts: ['denied.test'], proxy: ofFiles.url(`user:${password}`) },
    },
  });
  const send = (url: string) => {
    const content = [{ type: 'image_url', image_url: { url } }];
    return exchange(
      gateway.port,
      chatRequest(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })),
    );
  };
  const answer = await send(`http://pictures.test:${files.port}/a.png`);
  t.equal(answer.status, 200, answer.body);
  t.match((await upstream.request(0)).body.toString(), png.toString('base64'));
  t.strictSame([ofFiles.requests.length, ofUpstream.requests.length], [1, 1]);
  t.equal(ofFiles.requests[0]?.target, `pictures.test:${files.port}`);
  t.match(ofFiles.requests[0]?.head, `proxy-authorization: Basic ${basic}`);
  t.notMatch(files.requests[0]?.head, /proxy/i);
  for (const host of [
    '127.0.0.1',
    '10.0.0.1',
    'localhost',
    'a.LOCALHOST.',
    'minio',
    'a.internal',
    'denied.test',
    '[::1]',
  ])
    t.match(
      await send(`http://${host}:${files.port}/a.png`),
      { status: 400, body: /it has no address that may be fetched from/ },
      host,
    );
  t.equal(ofFiles.requests.length, 1, 'what may not be fetched is not asked for');
  ofFiles.answer = ({ socket }) => socket.end('HTTP/1.1 407 X\r\n\r\n');
  const refused = await send(`http://pictures.test:${files.port}/a.png`);
  t.match(refused, { status: 400, body: /the connection to it failed/ });
  t.notMatch(refused.body, /proxy|\b407\b/);
});

const causes: readonly (readonly [string, TestProxy['answer'], RegExp])[] = [
  [
    'answers 407',
    ({ socket }) => socket.end('HTTP/1.1 407 X\r\n\r\n'),
    /^proxy_failed: .*: proxy answered 407 \(127/,
  ],
  [
    'sends bytes right behind its head',
    ({ socket }) => socket.write(`${tunnelOpened}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`),
    /^proxy_failed: .* bytes behind the head/,
  ],
  [
    'sends a huge head',
    ({ socket }) => socket.write(`HTTP/1.1 200 X\r\nx: ${'a'.repeat(20 * 1024)}`),
    /^proxy_failed: .* head too large/,
  ],
];

for (const [what, answer, cause] of causes) {
  test(`a proxy that ${what} is told in the log and counted, and never shown to the client`, async (t) => {
    const { proxy, upstream, gateway } = await start(t, jsonAnswer(200, completion));
    proxy.answer = answer;
    const heard = await exchange(gateway.port, chatRequest(whole));
    t.equal(heard.status, 502, heard.body);
    t.match(JSON.parse(heard.body).error, {
      code: 'upstream_error',
      message: 'The upstream cannot be reached.',
    });
    t.notMatch(heard.body, /proxy|127\.0/);
    t.match(await gateway.line(({ msg }) => msg === 'request'), { cause });
    const figures = figuresOf(gateway);
    const attempts = figures.sum('gateway_upstream_attempts_total', { result: 'proxy_failed' });
    t.equal(attempts, proxy.requests.length);
    t.equal(upstream.requests.length, 0);
    t.notOk(JSON.stringify(gateway.lines).includes(password));
    t.notOk(JSON.stringify(gateway.lines).includes(basic));
  });
}

test('a proxy that never answers is a connection that does not come about in time', async (t) => {
  const proxy = await startProxy(t, () => {});
  const spare = await startUpstream(t, jsonAnswer(200, completion));
  const tls = { ca: authority, ...clientCertificate };
  const gateway = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        u0: { kind: 'chat', baseUrl: 'https://api.hidden.test/v1', proxy: proxy.url(), tls },
        u1: { kind: 'chat', baseUrl: spare.url, tls },
      },
      models: {
        m: {
          protocols: ['chat'],
          targets: [
            { upstream: 'u0', priority: 0 },
            { upstream: 'u1', priority: 1 },
          ],
        },
        alone: { protocols: ['chat'], targets: [{ upstream: 'u0', model: 'm' }] },
      },
      timeouts: { connectMs: 1500 },
    },
  });
  const late = await exchange(gateway.port, chatRequest(whole.replace('"m"', '"alone"')));
  t.equal(late.status, 504, late.body);
  t.match(await gateway.line(({ msg }) => msg === 'request'), {
    cause: /^connect_timeout: .* proxy opened no tunnel in time/,
  });
  t.equal((await exchange(gateway.port, chatRequest(whole))).status, 200, 'another target is asked');
  for (const { socket } of proxy.requests) await eventually(() => socket.destroyed);
});

test('a proxy that dies within a stream ends it with the error of its protocol', async (t) => {
  const { proxy, gateway } = await start(t, ({ socket }) =>
    socket.write(streamHead + chunk(chatEvent({ role: 'assistant', content: 'hi' }))),
  );
  const client = await open(gateway.port, chatRequest(streamed));
  const answer = readAnswer(client);
  await once(client, 'data');
  proxy.requests[0]?.socket.resetAndDestroy();
  const { status, body } = await answer;
  client.destroy();
  t.equal(status, 200);
  t.match(body, /"content":"hi"[\s\S]*"error":\{/);
  t.notMatch(body, /\[DONE\]/);
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
});

test('two upstreams of one origin go each through its own proxy', async (t) => {
  const proxies = [await startProxy(t), await startProxy(t)] as const;
  const upstream = await startUpstream(t, jsonAnswer(200, completion));
  const names = ['first', 'second'];
  const gateway = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: Object.fromEntries(
        proxies.map((proxy, index) => [
          `u${index}`,
          { kind: 'chat', baseUrl: named(upstream.url), ...wayThrough(proxy) },
        ]),
      ),
      models: Object.fromEntries(
        names.map((name, index) => [
          name,
          { protocols: ['chat'], targets: [{ upstream: `u${index}`, model: name }] },
        ]),
      ),
    },
  });
  for (const name of [...names, ...names]) {
    const { status } = await exchange(gateway.port, chatRequest(whole.replace('"m"', `"${name}"`)));
    t.equal(status, 200);
  }
  t.strictSame(
    proxies.map(({ requests }) => requests.length),
    [1, 1],
  );
  const bodies = upstream.requests.map(
    ({ socket, body }) => [socket, JSON.parse(body.toString()).model] as const,
  );
  for (const [socket, name] of bodies)
    for (const [other, otherName] of bodies) t.equal(socket === other, name === otherName);
});
