import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { inputBody, png } from '../../support/media/images.js';
import { open, readAnswer } from '../../support/raw-client.js';
import { jsonAnswer, type RawUpstream, startRawUpstream } from '../../support/upstream.js';

const generations = '/v1/images/generations';
const edits = '/v1/images/edits';
const asBytes = { model: 'm', prompt: 'a fox', response_format: 'b64_json' };

function fileAnswer(bytes: Buffer, lines = 'content-type: image/png\r\n'): Buffer {
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 200 OK\r\n${lines}content-length: ${bytes.length}\r\n\r\n`),
    bytes,
  ]);
}

/** An upstream whose images are where `urlOf` says, and that serves those at its own address. */
function startUpstream(
  t: Test,
  urlsOf: (own: string) => readonly string[],
  bytes: Buffer = png,
  lines?: string,
): Promise<RawUpstream> {
  const upstream = startRawUpstream(t, ({ head, socket }) => {
    if (head.startsWith('GET')) {
      socket.write(fileAnswer(bytes, lines));
      return;
    }
    void upstream.then(({ url }) => {
      const data = urlsOf(url.slice(0, -'/v1'.length)).map((each) => ({ url: each }));
      socket.write(jsonAnswer(200, JSON.stringify({ data })));
    });
  });
  return upstream;
}

function start(t: Test, upstream: Record<string, unknown>, config: Record<string, unknown> = {}) {
  return startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: upstream },
      models: {
        m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'real', images: 'openai-files' }] },
      },
      config,
    }),
  });
}

test('what an image is said to be at, and is a page or JSON, is not sent as a file', async (t) => {
  for (const [type, text] of [
    ['application/json', '{"error":"no"}'],
    ['text/html', '<!doctype html><html>no</html>'],
  ] as const) {
    const upstream = await startUpstream(t, () => [], Buffer.from(text), `content-type: ${type}\r\n`);
    const gateway = await start(t, { baseUrl: upstream.url, fetchPrivate: true });
    const at = upstream.url.replace(/v1$/, 'a.png');
    const body = { model: 'm', prompt: 'a fox', image: [{ image_url: at }] };
    const heard = await ask(gateway, 'POST', edits, { body });
    t.equal(heard.status, 400, heard.text);
    t.match(heard.json, { error: { param: 'image[0].image_url' } });
    t.notOk(upstream.requests.some(({ head }) => head.startsWith('POST')));
  }
  const called = await startUpstream(t, (own) => [`${own}/a.png`], png, 'content-type: application/json\r\n');
  const gateway = await start(t, { baseUrl: called.url, fetchPrivate: true });
  const image = [{ image_url: called.url.replace(/v1$/, 'a.png') }];
  const heard = await ask(gateway, 'POST', edits, { body: { model: 'm', prompt: 'a fox', image } });
  t.equal(heard.status, 200, 'the bytes of an image are sent, whatever they are called');
  const sent = called.requests.find(({ head }) => head.startsWith('POST'))?.body.toString('latin1') ?? '';
  t.match(sent, /Content-Type: image\/png/i);
});

test('images that were made and do not reach the client cost the operator, and nobody else', async (t) => {
  const usage = { input_tokens: 10, output_tokens: 8000, total_tokens: 8010 };
  const upstream = await startRawUpstream(t, ({ head, socket, body }) => {
    const isNone = body.includes('none');
    const data = isNone ? [] : [{ url: `${base}/a.png` }, { url: `${base}/b.png` }];
    if (head.startsWith('GET')) socket.write('HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n');
    else
      socket.write(
        jsonAnswer(
          200,
          JSON.stringify({
            data,
            usage: isNone && body.includes('never') ? { input_tokens: 5, output_tokens: 1e12 } : usage,
          }),
        ),
      );
  });
  const base = upstream.url.slice(0, -'/v1'.length);
  const { store, lines } = openLedger(t);
  const cost = { input: 5, output: 40, perCall: 0.01 };
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: { m: { protocols: ['images'], targets: [{ upstream: 'u', cost }], price: { perCall: 1 } } },
      config: { store, usage: { ledger: true } },
    }),
  });
  const cases = [
    { prompt: 'a fox', paid: 10 * 5000 + 8000 * 40_000 + 2 * 10_000_000 },
    { prompt: 'none', paid: 10 * 5000 + 8000 * 40_000 },
  ];
  for (const [index, { prompt, paid }] of cases.entries()) {
    const heard = await ask(gateway, 'POST', generations, { body: { ...asBytes, prompt } });
    t.equal(heard.status, 502, heard.text);
    const all = await lines(2 * (index + 1));
    const [attempt] = all.filter(({ outcome }) => outcome === 'attempt').slice(-1);
    t.match(attempt, { outputTokens: 8000, costNanoUsd: 0, paidNanoUsd: paid }, prompt);
    const calls = all.filter(({ outcome }) => outcome !== 'attempt');
    t.match(calls.slice(-1), [{ units: 0, costNanoUsd: 0 }]);
  }
  const never = await ask(gateway, 'POST', generations, { body: { ...asBytes, prompt: 'none, never' } });
  t.equal(never.status, 502);
  const more = await lines(2 * cases.length + 1);
  t.equal(
    more.filter(({ outcome }) => outcome === 'attempt').length,
    cases.length,
    'no call can have used it',
  );
});

test('an image at the upstream itself is fetched without its key, each address once', async (t) => {
  const upstream = await startUpstream(t, (own) => [
    `${own}/a.png?sig=1`,
    `${own}/a.png?sig=1`,
    `${own}/b.png`,
  ]);
  const gateway = await start(t, { baseUrl: upstream.url, headers: { 'x-own': 'secret' } });
  const heard = await ask(gateway, 'POST', generations, { body: asBytes });
  t.equal(heard.status, 200, heard.text);
  const image = { b64_json: png.toString('base64') };
  t.strictSame(heard.json.data, [image, image, image]);
  t.equal(heard.headers.get('x-gateway-path'), 'translated');
  const gets = upstream.requests.filter(({ head }) => head.startsWith('GET'));
  t.strictSame(
    gets.map(({ head }) => head.split(' ')[1]),
    ['/a.png?sig=1', '/b.png'],
  );
  for (const { head } of gets) t.notMatch(head, /upstream-key|secret|sk-test/);
});

test('an image elsewhere in a private network is fetched where the config allows it', async (t) => {
  const files = await startUpstream(t, () => []);
  const upstream = await startUpstream(t, (own) => [`${own}/own.png`, `${files.url}/a.png`]);
  const closed = await start(t, { baseUrl: upstream.url });
  const refused = await ask(closed, 'POST', generations, { body: asBytes });
  t.equal(refused.status, 502);
  t.match(refused.json, { error: { code: 'upstream_error' } });
  t.notMatch(refused.text, /127\.0\.0\.1/);
  t.equal(files.requests.length, 0);
  const open = await start(t, { baseUrl: upstream.url, fetchPrivate: true });
  const made = await ask(open, 'POST', generations, { body: asBytes });
  t.equal(made.status, 200, made.text);
  t.equal(files.requests.length, 1);
});

test('an image that cannot be had is 502', async (t) => {
  for (const url of ['http://127.0.0.1:1/a.png', 'http://169.254.169.254/', 'http://name.invalid/a.png']) {
    const upstream = await startUpstream(t, () => [url]);
    const gateway = await start(t, { baseUrl: upstream.url });
    const heard = await ask(gateway, 'POST', generations, { body: asBytes });
    t.equal(heard.status, 502, url);
    t.match(heard.json, { error: { message: 'An image of the upstream cannot be fetched.' } });
  }
  for (const answer of [
    'HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n',
    fileAnswer(png, 'content-encoding: gzip\r\n'),
    'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nx',
  ]) {
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      const [, host] = /^host: (.*)$/m.exec(head) ?? [];
      if (head.startsWith('GET')) socket.end(answer);
      else socket.write(jsonAnswer(200, JSON.stringify({ data: [{ url: `http://${host?.trim()}/a.png` }] })));
    });
    const gateway = await start(t, { baseUrl: upstream.url });
    const heard = await ask(gateway, 'POST', generations, { body: asBytes });
    t.equal(heard.status, 502, heard.text);
  }
});

test('a page or JSON in the place of an image is 502, and an image that is text is one', async (t) => {
  for (const [type, text, status] of [
    ['text/html; charset=utf-8', '<p>Sign in</p>', 502],
    ['text/plain', ' <!DOCTYPE html><title>Sign in</title>', 502],
    ['application/json', '{"error":"expired"}', 502],
    ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>', 200],
    ['application/xml', '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', 200],
    ['image/svg+xml', '<!-- drawn --><svg xmlns="http://www.w3.org/2000/svg"/>', 200],
    ['image/svg+xml', '<!-- gone --><!doctype html><title>Sign in</title>', 502],
  ] as const) {
    const bytes = Buffer.from(text);
    const upstream = await startUpstream(t, (own) => [`${own}/a`], bytes, `content-type: ${type}\r\n`);
    const gateway = await start(t, { baseUrl: upstream.url });
    const heard = await ask(gateway, 'POST', generations, { body: asBytes });
    t.equal(heard.status, status, `${type}: ${heard.text}`);
    if (status === 502)
      t.match(heard.json, { error: { message: 'An image of the upstream cannot be fetched.' } });
    else t.strictSame(heard.json.data, [{ b64_json: bytes.toString('base64') }]);
  }
});

test('a call ends when its client has taken the last image, however long that takes', async (t) => {
  const large = Buffer.concat([png, Buffer.alloc(12 * 1024 * 1024)]);
  const upstream = await startUpstream(t, (own) => [`${own}/a.png`], large);
  const gateway = await start(t, { baseUrl: upstream.url });
  const body = JSON.stringify(asBytes);
  const head = `POST ${generations} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n`;
  const fields = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const socket = await open(gateway.port, head + fields + body);
  await once(socket, 'readable');
  const stalledMs = 700;
  await pause(stalledMs);
  const heard = await readAnswer(socket);
  t.equal(heard.status, 200);
  const { durationMs } = await gateway.line(({ msg, path }) => msg === 'request' && path === generations);
  t.ok((durationMs as number) >= stalledMs, `${durationMs as number}`);
  socket.destroy();
});

test('images and answers are bounded', async (t) => {
  const huge = await startUpstream(t, (own) => [`${own}/a.png`], Buffer.alloc(33 * 1024 * 1024));
  const gateway = await start(t, { baseUrl: huge.url });
  t.equal((await ask(gateway, 'POST', generations, { body: asBytes })).status, 502);
  const plain = await ask(gateway, 'POST', generations, { body: { model: 'm', prompt: 'a fox' } });
  t.equal(plain.status, 200, 'which does not matter to one who wants the address');
  for (const lines of ['content-length: 99999999999\r\n', 'content-length: 3000000000\r\n']) {
    const upstream = await startRawUpstream(t, ({ socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${lines}\r\n{"data":[`),
    );
    const bounded = await start(t, { baseUrl: upstream.url });
    const heard = await ask(bounded, 'POST', generations, { body: asBytes });
    t.equal(heard.status, 502);
    t.equal(heard.json.error !== undefined, true);
    await eventually(() => upstream.sockets.size, {
      fits: (open) => open === 0,
      everyMs: 10,
    });
  }
});

test('a long answer finds room or is refused, and room that is not needed is free again', async (t) => {
  const long = Buffer.alloc(3_000_000, 'A').toString();
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(200, JSON.stringify({ data: [{ b64_json: long }] }))),
  );
  const small = await start(
    t,
    { baseUrl: upstream.url },
    { limits: { bodyBytes: 100_000, bufferedBytes: 1_000_000 } },
  );
  const refused = await ask(small, 'POST', generations, { body: asBytes });
  t.equal(refused.status, 503);
  const large = await start(
    t,
    { baseUrl: upstream.url },
    { limits: { bodyBytes: 100_000, bufferedBytes: 4_000_000, bufferedBytesPerKey: 4_000_000 } },
  );
  for (let round = 0; round < 5; round++) {
    const heard = await ask(large, 'POST', generations, { body: asBytes });
    t.equal(heard.status, 200, heard.text.slice(0, 200));
    t.equal(heard.bytes.length > 3_000_000, true);
  }
});

test('a worker with little room fetches all the same, and gives the room back', async (t) => {
  const upstream = await startUpstream(t, (own) => [`${own}/a.png`]);
  const gateway = await start(
    t,
    { baseUrl: upstream.url, fetchPrivate: true },
    { limits: { bodyBytes: 100_000, bufferedBytes: 2_000_000 } },
  );
  const own = upstream.url.slice(0, -'/v1'.length);
  for (let round = 0; round < 20; round++) {
    const heard = await ask(gateway, 'POST', generations, { body: asBytes });
    t.equal(heard.status, 200, heard.text);
    const body = inputBody('m', [{ text: 'a' }, { image: `${own}/${round}.png` }]);
    t.equal((await ask(gateway, 'POST', edits, { body })).status, 200);
  }
});

test('the image of a client that cannot be fetched is named by its place', async (t) => {
  const files = await startUpstream(t, () => []);
  const upstream = await startUpstream(t, () => []);
  const gateway = await start(t, { baseUrl: upstream.url, fetchPrivate: true });
  const content = [{ text: 'a' }, { image: `${files.url}/a.png` }, { image: 'http://127.0.0.1:1/b.png' }];
  const heard = await ask(gateway, 'POST', edits, { body: inputBody('m', content) });
  t.equal(heard.status, 400);
  t.match(heard.json, {
    error: {
      code: 'invalid_value',
      param: 'input.messages[0].content[2].image',
      message: /^input\.messages\[0\]\.content\[2\]\.image: /,
    },
  });
  t.equal(upstream.requests.length, 0);
});

test('a client that leaves while images are fetched ends that', async (t) => {
  const files = await startRawUpstream(t, () => {});
  const upstream = await startUpstream(t, () => [`${files.url}/a.png`]);
  const gateway = await start(t, { baseUrl: upstream.url, fetchPrivate: true });
  const bodies = [
    [generations, asBytes],
    [edits, inputBody('m', [{ text: 'a' }, { image: `${files.url}/b.png` }])],
  ] as const;
  for (const [index, [path, body]] of bodies.entries()) {
    const leaving = new AbortController();
    const left = ask(gateway, 'POST', path, { body, signal: leaving.signal });
    await files.request(index);
    leaving.abort();
    await t.rejects(left);
    await eventually(() => files.sockets.size, { fits: (open) => open === 0, everyMs: 10 });
    t.match(await gateway.line((line) => line.outcome === 'client_gone' && line.path === path), {
      status: 0,
    });
  }
});
