import { type Test, test } from 'tap';
import { resendableMs } from '../../../src/upstream/types.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { clientFormats, compat } from '../../support/media/client-formats.js';
import { ask, file, formOf, mediaConfig, strangerKey } from '../../support/media/gateway.js';
import { onlyClientsAsk } from '../../support/media/videos.js';
import { exchange, open } from '../../support/raw-client.js';
import { type Answer, jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const taken = (id: string) => JSON.stringify({ id, object: 'video', status: 'queued', progress: 0 });
/** An upstream that is asked for what clients ask for alone. */
const startCreations = (t: Test, answer: Answer) => {
  onlyClientsAsk(t);
  return startRawUpstream(t, answer);
};
const idempotencyKey = (request: RawRequest | undefined) =>
  /^idempotency-key: (.*)$/m.exec(request?.head ?? '')?.[1]?.trim();
const asked = { model: 'm', prompt: 'a fox' };
const nowhere = 'http://127.0.0.1:1/v1';

function start(t: Test, urls: readonly string[], config: Record<string, unknown> = {}) {
  return startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(urls.map((baseUrl, index) => [`u${index}`, { baseUrl }])),
      models: {
        m: {
          protocols: ['video'],
          targets: urls.map((_, priority) => ({ upstream: `u${priority}`, model: 'real', priority })),
        },
      },
      config,
    }),
  });
}

test('where nothing listens, the next target is asked, and has the task from then on', async (t) => {
  const upstream = await startRawUpstream(t, () => jsonAnswer(200, taken('theirs')));
  const gateway = await start(t, [nowhere, upstream.url]);
  const created = await compat.create(gateway, asked);
  t.equal(created.status, 200, created.text);
  const line = await gateway.line(({ id }) => id === created.headers.get('x-request-id'));
  t.match(line, { retries: 1, target: 'u1/real', outcome: 'complete' });
  await compat.show(gateway, compat.idOf(created));
  t.match(upstream.requests.at(-1)?.head, /^GET \/v1\/videos\/theirs HTTP/);
});

test('where nothing listens at all, the answer is 502 in each format, and nothing remains', async (t) => {
  for (const clientFormat of clientFormats) {
    const gateway = await start(t, [nowhere, nowhere]);
    const failed = await clientFormat.create(gateway, asked);
    t.equal(failed.status, 502);
    if (clientFormat.format === 'vendorj') t.match(failed.json, { code: 50_502 });
    else t.match(failed.json, { error: { code: 'upstream_error', type: 'server_error' } });
    if (clientFormat.format === 'vendork') t.match(failed.json, { code: 5000 });
  }
});

test('what was sent once is not sent again: the upstream may have begun', async (t) => {
  const upstream = await startCreations(t, ({ socket }) => socket.resetAndDestroy());
  const spare = await startCreations(t, () => jsonAnswer(200, taken('spare')));
  const gateway = await start(t, [upstream.url, spare.url]);
  const headers = { 'idempotency-key': 'once' };
  const failed = await compat.create(gateway, asked, { headers });
  t.equal(failed.status, 502);
  t.equal(failed.headers.get('x-should-retry'), 'false');
  t.match(failed.json, { error: { code: 'upstream_error' } });
  const again = await compat.create(gateway, asked, { headers });
  t.equal(again.status, 200);
  t.match(again.json, {
    status: 'failed',
    error: { code: 'submission_failed', message: /unknown whether it created the task/ },
  });
  t.match((await compat.show(gateway, compat.idOf(again))).heard.json, { status: 'failed' });
  t.equal(upstream.requests.length, 1);
  t.equal(spare.requests.length, 0);
});

test('an answer that is none ends the task, and is not tried elsewhere', async (t) => {
  const bodies = [
    '',
    'OK',
    '[]',
    'null',
    '{}',
    '{"id":null}',
    '{"id":""}',
    '{"id":{}}',
    '{"id":"a b"}',
    '{"id":".."}',
  ];
  const upstream = await startCreations(t, (_, index) => jsonAnswer(200, bodies[index] ?? ''));
  const gateway = await start(t, [upstream.url, nowhere], { routing: { failures: 100, minimumCalls: 100 } });
  for (const [index, body] of bodies.entries()) {
    const headers = { 'idempotency-key': `k${index}` };
    const failed = await compat.create(gateway, asked, { headers });
    t.equal(failed.status, 502, body);
    t.match(failed.json, { error: { code: 'upstream_error' } });
    t.match((await compat.create(gateway, asked, { headers })).json, { status: 'failed' });
  }
  t.equal(upstream.requests.length, bodies.length);
});

test('a request that has come before is answered though no upstream can be asked now', async (t) => {
  const state = { answer: jsonAnswer(200, taken('theirs')) };
  const upstreams = [0, 1].map(() => startCreations(t, () => state.answer));
  const urls = (await Promise.all(upstreams)).map(({ url }) => url);
  const gateway = await start(t, urls, { routing: { failures: 1, openMs: 60_000 } });
  const headers = { 'idempotency-key': 'once' };
  const created = await compat.create(gateway, asked, { headers });
  state.answer = jsonAnswer(503, '{}');
  t.equal((await compat.create(gateway, asked)).status, 503);
  const refused = await compat.create(gateway, asked, { headers: { 'idempotency-key': 'another' } });
  t.match(refused.json, { error: { code: 'overloaded' } });
  const again = await compat.create(gateway, asked, { headers });
  t.equal(again.status, 200);
  t.equal(compat.idOf(again), compat.idOf(created));
  const other = await compat.create(gateway, { ...asked, prompt: 'a wolf' }, { headers });
  t.equal(other.status, 409);
});

test('strange members of a good answer do no harm', async (t) => {
  const answers = [
    { id: 7, status: 5, progress: 'x', error: 3 },
    { id: 'a/b?c', status: 'queued', progress: null },
    { id: 'x', status: 'unheard-of' },
    { id: 'y', status: 'completed', size: 4, seconds: {}, completed_at: -1, metadata: [] },
  ];
  const upstream = await startCreations(t, (_, index) => jsonAnswer(200, JSON.stringify(answers[index])));
  const gateway = await start(t, [upstream.url]);
  for (const answer of answers) {
    const created = await compat.create(gateway, asked);
    t.equal(created.status, 200, created.text);
    t.match(created.json, { status: answer.status === 'completed' ? 'completed' : 'queued', model: 'm' });
  }
});

test('a refusal of the upstream leaves nothing behind, and the same key may try again', async (t) => {
  const refusal = JSON.stringify({
    error: { message: 'No foxes.', type: 'x', param: 'prompt', code: 'own' },
    more: 1,
  });
  const upstream = await startCreations(t, (_, index) =>
    index === 0 ? jsonAnswer(422, refusal, 'retry-after: 9\r\n') : jsonAnswer(200, taken('second')),
  );
  const gateway = await start(t, [upstream.url]);
  const headers = { 'idempotency-key': 'again' };
  const refused = await compat.create(gateway, asked, { headers });
  t.equal(refused.status, 422);
  t.equal(refused.text, refusal, 'as it came');
  t.equal(refused.headers.get('retry-after'), '9');
  const created = await compat.create(gateway, asked, { headers });
  t.equal(created.status, 200, created.text);
  t.match(created.json, { status: 'queued' });
});

test('a gateway error before the upstream says nothing of the task, and is not to be tried again', async (t) => {
  const upstream = await startCreations(t, () => jsonAnswer(504, '{"error":{"message":"too late"}}'));
  const gateway = await start(t, [upstream.url]);
  const headers = { 'idempotency-key': 'late' };
  const failed = await compat.create(gateway, asked, { headers });
  t.equal(failed.status, 504);
  t.equal(failed.headers.get('x-should-retry'), 'false');
  t.match((await compat.create(gateway, asked, { headers })).json, { status: 'failed' });
  t.equal(upstream.requests.length, 1);
});

test('a redirect of the upstream is no answer', async (t) => {
  const upstream = await startCreations(t, () =>
    jsonAnswer(302, '{}', 'location: http://elsewhere.invalid/\r\n'),
  );
  const gateway = await start(t, [upstream.url]);
  for (const clientFormat of clientFormats) {
    const failed = await clientFormat.create(gateway, asked);
    t.equal(failed.status, 502, clientFormat.format);
    t.equal(failed.headers.get('location'), null);
  }
});

test('a success that holds an error is told as one', async (t) => {
  const body = JSON.stringify({ error: { message: 'No foxes.', code: 'own' } });
  const upstream = await startCreations(t, () => jsonAnswer(200, body));
  const gateway = await start(t, [upstream.url]);
  const failed = await compat.create(gateway, asked);
  t.ok(failed.status >= 400, failed.text);
  t.match(failed.json, { error: { message: /No foxes/ } });
});

test('a success which says that it came too late may have made the task', async (t) => {
  const cases = [
    { code: 5002, afterMs: 0, status: 504 },
    // Only a soon answer proves that an upstream with too much to do has not begun.
    { code: 5001, afterMs: resendableMs + 100, status: 503 },
  ];
  for (const { code, afterMs, status } of cases) {
    const answer = jsonAnswer(200, JSON.stringify({ code, message: 'busy', request_id: 'r' }));
    const upstream = await startCreations(
      t,
      ({ socket }) => void setTimeout(() => socket.write(answer), afterMs),
    );
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { kind: 'vendork', baseUrl: upstream.url } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
      }),
    });
    const headers = { 'idempotency-key': 'once' };
    const failed = await compat.create(gateway, asked, { headers });
    t.equal(failed.status, status, failed.text);
    t.equal(failed.headers.get('x-should-retry'), 'false');
    const again = await compat.create(gateway, asked, { headers });
    t.match(again.json, { status: 'failed', error: { code: 'submission_failed' } }, again.text);
    t.equal(upstream.requests.length, 1);
  }
});

test('an idempotency key makes one task of many requests, at once and later', async (t) => {
  const held: (() => void)[] = [];
  const upstream = await startCreations(t, ({ socket }) => {
    held.push(() => socket.write(jsonAnswer(200, taken('theirs'))));
  });
  const gateway = await start(t, [upstream.url]);
  const headers = { 'idempotency-key': 'mine' };
  const first = compat.create(gateway, asked, { headers });
  await upstream.request(0);
  const early = await Promise.all([1, 2, 3].map(() => compat.create(gateway, asked, { headers })));
  for (const heard of early) {
    t.equal(heard.status, 409);
    t.equal(heard.headers.get('retry-after'), '1');
  }
  held[0]?.();
  const id = compat.idOf(await first);
  for (let times = 0; times < 3; times++)
    t.equal(compat.idOf(await compat.create(gateway, asked, { headers })), id);
  t.equal(upstream.requests.length, 1);
  const mark = idempotencyKey(upstream.requests[0]);
  t.match(mark, /^[0-9a-f]{64}$/, 'the upstream gets one that no other client can name');
  for (const [clientFormat, prompt] of [
    ...clientFormats.slice(1).map((each) => [each, asked] as const),
    [compat, { ...asked, prompt: 'Another.' }] as const,
  ]) {
    const heard = await clientFormat.create(gateway, prompt, { headers });
    t.equal(heard.status, 409, 'another request');
    t.equal(heard.headers.get('x-should-retry'), 'false');
  }

  const stranger = compat.create(gateway, asked, { headers, key: strangerKey });
  await upstream.request(1);
  held[1]?.();
  t.not(compat.idOf(await stranger), id, 'another key has its own');
  t.not(idempotencyKey(upstream.requests[1]), mark);
  const other = compat.create(gateway, asked, { headers: { 'idempotency-key': 'other' } });
  await upstream.request(2);
  held[2]?.();
  t.not(compat.idOf(await other), id);
});

test('many requests with one key at once reach the upstream once', async (t) => {
  const upstream = await startCreations(t, (_, index) => jsonAnswer(200, taken(`theirs${index}`)));
  const gateway = await start(t, [upstream.url]);
  const headers = { 'idempotency-key': 'mine' };
  const heard = await Promise.all(
    Array.from({ length: 20 }, () => compat.create(gateway, asked, { headers })),
  );
  const ids = new Set(heard.filter(({ status }) => status === 200).map(compat.idOf));
  t.equal(ids.size, 1);
  t.ok(heard.every(({ status }) => status === 200 || status === 409));
  t.equal(compat.idOf(await compat.create(gateway, asked, { headers })), [...ids][0]);
  t.equal(upstream.requests.length, 1);
});

test('without a key of the client, the upstream gets the id of the task', async (t) => {
  const upstream = await startCreations(t, () => jsonAnswer(200, taken('theirs')));
  const gateway = await start(t, [upstream.url]);
  const id = compat.idOf(await compat.create(gateway, asked));
  t.equal(idempotencyKey(upstream.requests[0]), id);
});

test('a form is passed on part by part, with the name of the model at the upstream', async (t) => {
  const upstream = await startCreations(t, () => jsonAnswer(200, taken('theirs')));
  const gateway = await start(t, [upstream.url]);
  const image = Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    Buffer.from([0, 255, 13, 10, 45, 45]),
  ]);
  const form = formOf([
    ['prompt', 'ein Füchslein'],
    ['model', 'm'],
    ['seconds', '8'],
    ['own_field', 'kept'],
    ['input_reference', file('ä "b".png', 'image/png', image)],
  ]);
  const created = await ask(gateway, 'POST', '/v1/videos', { body: form });
  t.equal(created.status, 200, created.text);
  const { head, body } = upstream.requests[0] as RawRequest;
  t.match(head, /^POST \/v1\/videos HTTP\/1.1\r\n/);
  t.match(head, /\r\nauthorization: Bearer upstream-key\r\n/);
  t.notMatch(head, testKey);
  const type = /content-type: (multipart\/form-data; boundary=.*)\r\n/.exec(head)?.[1] ?? '';
  const sent = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  t.strictSame([...sent.keys()], ['prompt', 'model', 'seconds', 'own_field', 'input_reference']);
  t.equal(sent.get('prompt'), 'ein Füchslein');
  t.equal(sent.get('model'), 'real');
  t.equal(sent.get('own_field'), 'kept');
  const picture = sent.get('input_reference') as File;
  t.equal(picture.type, 'image/png');
  t.ok(Buffer.from(await picture.arrayBuffer()).equals(image));
});

test('a client that leaves does not stop what the upstream may have begun', async (t) => {
  const held: (() => void)[] = [];
  const upstream = await startCreations(t, ({ socket }) => {
    held.push(() => socket.write(jsonAnswer(200, taken('theirs'))));
  });
  const gateway = await start(t, [upstream.url]);
  const body = JSON.stringify(asked);
  const socket = await open(
    gateway.port,
    `POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nidempotency-key: left\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await upstream.request(0);
  socket.destroy();
  // By its answer the gateway has seen it leave.
  await ask(gateway, 'GET', '/v1/models');
  t.equal(upstream.sockets.size, 1, 'the connection to the upstream stands');
  held[0]?.();
  await gateway.line(({ outcome }) => outcome === 'client_gone');
  const headers = { 'idempotency-key': 'left' };
  const later = await eventually(() => compat.create(gateway, asked, { headers }), {
    fits: ({ status }) => status === 200,
    everyMs: 10,
  });
  t.match(later.json, { status: 'queued' });
  t.equal(upstream.requests.length, 1);
});

test('a drain waits for a task whose client has left', async (t) => {
  const held: (() => void)[] = [];
  const upstream = await startCreations(t, ({ socket }) => {
    held.push(() => socket.write(jsonAnswer(200, taken('theirs'))));
  });
  const gateway = await start(t, [upstream.url]);
  const body = JSON.stringify(asked);
  const socket = await open(
    gateway.port,
    `POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await upstream.request(0);
  socket.destroy();
  // By its answer the gateway has seen it leave.
  await ask(gateway, 'GET', '/v1/models');
  let drained = false;
  const draining = gateway.gateway.drain().then(() => {
    drained = true;
  });
  // Longer than a drain with nothing under way takes.
  await new Promise((resolve) => setTimeout(resolve, 700));
  t.notOk(drained);
  held[0]?.();
  await draining;
  t.ok(drained);
  await gateway.line(({ outcome }) => outcome === 'client_gone');
});

test('a client that leaves before the upstream was asked: its form goes there unharmed', async (t) => {
  const upstream = await startCreations(t, () => jsonAnswer(200, taken('theirs')));
  const gateway = await start(t, [upstream.url]);
  const size = 30_000;
  const formText = (letter: string) =>
    `--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--B\r\n` +
    `Content-Disposition: form-data; name="prompt"\r\n\r\na fox\r\n--B\r\n` +
    `Content-Disposition: form-data; name="input_reference"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n` +
    `${letter.repeat(size)}\r\n--B--\r\n`;
  const request = (letter: string) => {
    const body = formText(letter);
    return (
      `POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
      `content-type: multipart/form-data; boundary=B\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    );
  };
  const leavers = await Promise.all(
    [...'abcdefghij'].map(async (letter) => [letter, await open(gateway.port, '')] as const),
  );
  for (const [letter, socket] of leavers) {
    // All of it is sent, and the end of the connection right behind it comes while the task is being noted.
    await new Promise<void>((resolve) => socket.write(request(letter), () => resolve()));
    socket.destroy();
  }
  // By its answer the gateway has seen all of them leave.
  await ask(gateway, 'GET', '/v1/models');
  const stayers = await Promise.all(
    [...'ABCDEFGHIJ'].map((letter) => exchange(gateway.port, request(letter))),
  );
  t.ok(stayers.every(({ status }) => status === 200));
  await eventually(() => upstream.requests.length, {
    fits: (count) => count === leavers.length + stayers.length,
    everyMs: 10,
  });
  await gateway.line(
    () => gateway.lines.filter(({ outcome }) => outcome === 'client_gone').length === leavers.length,
  );
  const letters = upstream.requests.map(({ body }) => {
    const content = /\r\n\r\n([a-zA-Z])\1{1000,}/.exec(body.toString('latin1'));
    t.equal(content?.[0].length, size + 4, 'one letter from begin to end');
    return content?.[1] ?? '';
  });
  t.equal(letters.toSorted().join(''), 'ABCDEFGHIJabcdefghij');
});

test('a body takes up its room until the upstream has answered, though its client has left', async (t) => {
  const held: (() => void)[] = [];
  const upstream = await startCreations(t, ({ socket }) => {
    held.push(() => socket.write(jsonAnswer(200, taken('theirs'))));
  });
  const gateway = await start(t, [upstream.url], { limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } });
  const large = { ...asked, extra: 'x'.repeat(90_000) };
  const leaving = new AbortController();
  const left = compat.create(gateway, large, { body: large, signal: leaving.signal });
  await upstream.request(0);
  leaving.abort();
  await t.rejects(left);
  // By its answer the gateway has seen it leave.
  await ask(gateway, 'GET', '/v1/models');
  const refused = await compat.create(gateway, asked, { body: large });
  t.equal(refused.status, 503, refused.text);
  held[0]?.();
  await gateway.line(({ outcome }) => outcome === 'client_gone');
  const retried = eventually(() => compat.create(gateway, asked, { body: large }), {
    fits: ({ status }) => status !== 503,
    everyMs: 10,
  });
  await upstream.request(1);
  held[1]?.();
  t.equal((await retried).status, 200);
});
