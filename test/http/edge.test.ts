import { once } from 'node:events';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type Test, test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { chatRequest, exchange, open, readAnswer } from '../support/raw-client.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';
const authorization = `authorization: Bearer ${testKey}\r\n`;

async function start(t: Test, config: Record<string, unknown> = {}) {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  return { upstream, gateway: await startGateway(t, { upstreams: [upstream.url], config }) };
}

function post(headers: string, content: string | Buffer = ''): Buffer {
  return Buffer.concat([
    Buffer.from(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${authorization}${headers}\r\n`),
    Buffer.from(content),
  ]);
}

async function receivedUntilClose(port: number, bytes: Buffer): Promise<string> {
  const socket = await open(port, bytes);
  let received = '';
  socket.on('data', (data) => {
    received += data.toString();
  });
  await once(socket, 'close');
  return received;
}

test('a request whose framing or host cannot be trusted is refused and its connection closed', async (t) => {
  const { gateway, upstream } = await start(t);
  const smuggled = `GET /v1/models HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`;
  const refused = {
    'two lengths': 'content-length: 0\r\ncontent-length: 5\r\n',
    'two equal lengths': 'content-length: 0\r\ncontent-length: 0\r\n',
    'two codings': 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n',
    'another coding': 'transfer-encoding: xchunked\r\n',
    'a list of codings': 'transfer-encoding: gzip, chunked\r\n',
    'two hosts': 'host: y\r\ncontent-length: 0\r\n',
  };
  for (const [name, headers] of Object.entries(refused)) {
    const alone = await receivedUntilClose(gateway.port, post(headers, '0\r\n\r\n'));
    t.match(alone, /^HTTP\/1\.1 400 /, name);
    const followed = Buffer.concat([post(headers, '0\r\n\r\n'), Buffer.from(smuggled)]);
    t.notMatch(
      await receivedUntilClose(gateway.port, followed),
      /HTTP\/1\.1 200 /,
      `${name}: what hides behind it is not answered`,
    );
  }
  t.equal(upstream.requests.length, 0);
});

test('a preflight whose framing cannot be trusted is refused like any other request', async (t) => {
  const { gateway } = await start(t, { listen: { host: '127.0.0.1', port: 0, cors: { origins: ['*'] } } });
  const preflight = (headers: string) =>
    `OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: x\r\norigin: https://a.example\r\naccess-control-request-method: POST\r\n${headers}\r\n`;
  const answered = await exchange(gateway.port, preflight(''));
  t.equal(answered.status, 204);
  const hidden = `GET /v1/models HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`;
  for (const headers of [
    `content-length: 0\r\ncontent-length: ${hidden.length}\r\n`,
    'transfer-encoding: gzip\r\n',
    'transfer-encoding: chunked, identity\r\n',
    'transfer-encoding: xchunked\r\n',
    'transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n',
    'host: y\r\n',
  ]) {
    const begun = preflight(headers) + (headers.startsWith('transfer') ? '0\r\n\r\n' : '');
    t.match(await receivedUntilClose(gateway.port, Buffer.from(begun)), /^HTTP\/1\.1 400 /, headers);
    t.notMatch(
      await receivedUntilClose(gateway.port, Buffer.from(begun + hidden)),
      /HTTP\/1\.1 20/,
      `${headers}: what hides behind it is not answered`,
    );
  }
});

test('a handshake with two keys is refused, since the one that is read may not be the one that was checked', async (t) => {
  const { gateway } = await start(t);
  const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  const handshake = (path: string, keys: string) =>
    Buffer.from(
      `GET ${path} HTTP/1.1\r\nhost: x\r\n${authorization}connection: upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\n${keys}\r\n`,
    );
  for (const path of ['/v1/responses', '/v1/realtime?model=m'])
    for (const second of [key, 'sec-websocket-key: A\r\n'])
      t.match(
        await receivedUntilClose(gateway.port, handshake(path, key + second)),
        /^HTTP\/1\.1 400 [\s\S]*more than one sec-websocket-key/,
        `${path}, ${second}`,
      );
});

test('a length with a coding, or one that is no number, never reaches an upstream', async (t) => {
  const { gateway, upstream } = await start(t);
  for (const headers of [
    'content-length: 3\r\ntransfer-encoding: chunked\r\n',
    'content-length: +3\r\n',
    'content-length: 3, 3\r\n',
    'content-length: \r\n',
    'content-length: 99999999999999999999\r\n',
  ]) {
    const received = await receivedUntilClose(gateway.port, post(headers, '0\r\n\r\n'));
    t.match(received, /^(HTTP\/1\.1 4\d\d |$)/, headers);
  }
  t.equal(upstream.requests.length, 0);
});

test('a chunked body of any split arrives whole', async (t) => {
  const { gateway, upstream } = await start(t);
  const long = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'é'.repeat(40_000) }] });
  for (const size of [1, 7, 1000, 65_536]) {
    const bytes = Buffer.from(size === 1 ? body : long);
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size);
      pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    }
    const answer = await exchange(
      gateway.port,
      Buffer.concat([post('transfer-encoding: chunked\r\n'), ...pieces, Buffer.from('0\r\n\r\n')]),
    );
    t.equal(answer.status, 200);
    t.ok(upstream.requests.at(-1)?.body.equals(bytes));
  }
});

test('a body over the limit is refused, announced or not', async (t) => {
  const { gateway, upstream } = await start(t, { limits: { bodyBytes: 1000 } });
  const announced = await exchange(gateway.port, post('content-length: 1001\r\n', 'x'.repeat(1001)));
  t.equal(announced.status, 413);
  t.match(JSON.parse(announced.body), { error: { code: 'request_too_large' } });
  const chunked = `3e9\r\n${'x'.repeat(1001)}\r\n0\r\n\r\n`;
  t.equal((await exchange(gateway.port, post('transfer-encoding: chunked\r\n', chunked))).status, 413);
  t.equal((await exchange(gateway.port, chatRequest(body))).status, 200);
  t.equal(upstream.requests.length, 1);
});

test('a compressed body is decoded under the limit', async (t) => {
  const { gateway, upstream } = await start(t, { limits: { bodyBytes: 10_000 } });
  const codings = { gzip: gzipSync(body), deflate: deflateSync(body), br: brotliCompressSync(body) };
  for (const [coding, bytes] of Object.entries(codings)) {
    const answer = await exchange(gateway.port, chatRequest(bytes, `content-encoding: ${coding}\r\n`));
    t.equal(answer.status, 200, coding);
    t.equal(upstream.requests.at(-1)?.body.toString(), body);
    t.notMatch(upstream.requests.at(-1)?.head, /content-encoding/);
  }
  const bomb = await exchange(
    gateway.port,
    chatRequest(gzipSync(Buffer.alloc(1_000_000)), 'content-encoding: gzip\r\n'),
  );
  t.equal(bomb.status, 413);
  t.equal((await exchange(gateway.port, chatRequest('no gzip', 'content-encoding: gzip\r\n'))).status, 400);
  const unknown = await exchange(gateway.port, chatRequest(body, 'content-encoding: compress\r\n'));
  t.equal(unknown.status, 415);
  t.match(unknown.head, /\r\naccept-encoding: gzip, deflate, br/);
});

test('a caller without a key is refused before its body is read', async (t) => {
  const { gateway, upstream } = await start(t);
  const head = (path: string, headers: string) =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}content-length: 100000\r\n\r\n`;
  for (const path of ['/v1/chat/completions', '/v1/files']) {
    const answer = await exchange(gateway.port, head(path, 'authorization: Bearer wrong\r\n'));
    t.equal(answer.status, 401, `${path} answers while the body has not come`);
    t.match(JSON.parse(answer.body), { error: { code: 'invalid_api_key', type: 'invalid_request_error' } });
  }
  const misplaced = await exchange(gateway.port, head('/v1/chat/completions', `x-api-key: ${testKey}\r\n`));
  t.equal(misplaced.status, 401);
  t.match(JSON.parse(misplaced.body).error.message, /Authorization: Bearer/);
  t.equal(upstream.requests.length, 0);
});

test('a connection goes on after a refusal whose body came in full', async (t) => {
  const { gateway } = await start(t);
  const socket = await open(gateway.port, '');
  const bad = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer no\r\ncontent-length: 100000\r\n\r\n${'x'.repeat(100_000)}`,
  );
  socket.write(bad);
  t.equal((await readAnswer(socket)).status, 401);
  socket.write(chatRequest(body));
  t.equal((await readAnswer(socket)).status, 200);
  socket.destroy();
});

test('unimplemented endpoints answer 501 once and only to a known key', async (t) => {
  const { gateway } = await start(t);
  const known = await exchange(gateway.port, `GET /v1/files HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`);
  t.equal(known.status, 501);
  t.match(known.head, /\r\nx-should-retry: false/);
  t.match(JSON.parse(known.body), { error: { code: 'not_implemented' } });
  const lines = [
    'GET /v1/files',
    'POST /v1/models/m:predict',
    'POST /v1beta/models/org/m:batchGenerateContent',
  ];
  for (const line of lines) {
    const unknown = await exchange(gateway.port, `${line} HTTP/1.1\r\nhost: x\r\n\r\n`);
    t.equal(unknown.status, 401, line);
  }
});

test('GET /v1/responses without a WebSocket is answered 426', async (t) => {
  const { gateway } = await start(t);
  const answer = await exchange(
    gateway.port,
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`,
  );
  t.equal(answer.status, 426);
  t.match(JSON.parse(answer.body), { error: { code: 'upgrade_required' } });
});

test('unknown paths and wrong methods are told in the error format of the path', async (t) => {
  const { gateway } = await start(t);
  const ask = (line: string) => exchange(gateway.port, `${line} HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`);
  const doubled = await ask('GET /v1/v1/chat/completions');
  t.equal(doubled.status, 404);
  t.match(JSON.parse(doubled.body).error.message, /twice/);
  const wrong = await ask('GET /v1/chat/completions');
  t.equal(wrong.status, 405);
  t.match(wrong.head, /\r\nallow: POST/);
  t.match(JSON.parse((await ask('GET /v1beta/nothing')).body), { error: { code: 404, status: 'NOT_FOUND' } });
  const operation = await ask('POST /v1/models/m:predict');
  t.equal(operation.status, 501);
  t.match(JSON.parse(operation.body), { error: { status: 'UNIMPLEMENTED', message: /:predict is not/ } });
  const deleted = await ask('DELETE /v1/models/ft:gpt-4o-mini:acme::abc');
  t.equal(deleted.status, 405);
  t.match(JSON.parse(deleted.body), { error: { code: 'method_not_allowed' } });
  t.equal((await ask('POST /v1beta/models/m:foo')).status, 404);
  t.match(JSON.parse((await ask('GET /openai/v1/v1/chat/completions')).body).error.message, /twice/);
  t.match(JSON.parse((await ask('GET /anthropic/v1/nothing')).body), { type: 'error' });
  t.match(JSON.parse((await ask('GET /openai/v1/models')).body), { object: 'list' });
  t.match(JSON.parse((await ask('GET /v1/messages/nothing')).body), {
    type: 'error',
    error: { type: 'not_found_error' },
  });
});

test('every answer carries an id of its own and its timing', async (t) => {
  const { gateway } = await start(t);
  const ids = new Set<string>();
  for (const bytes of [
    chatRequest(body),
    chatRequest('{'),
    Buffer.from('GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n'),
  ]) {
    const { head } = await exchange(gateway.port, bytes);
    const id = /\r\nx-request-id: (req_[0-9a-f]{26})/.exec(head)?.[1];
    t.type(id, 'string');
    ids.add(id ?? '');
    t.match(head, /\r\nserver-timing: .*own;dur=\d+\.\d{3}/);
  }
  t.equal(ids.size, 3);
});

test('a head over the limit is refused by the server', async (t) => {
  const { gateway } = await start(t);
  const answer = await exchange(
    gateway.port,
    post(`x-long: ${'a'.repeat(100_000)}\r\ncontent-length: 0\r\n`),
  );
  t.ok(answer.status === 431 || answer.status === 0);
  t.equal((await exchange(gateway.port, chatRequest(body))).status, 200);
});

test('a body that stops coming is given up after its deadline', async (t) => {
  const { gateway } = await start(t, { timeouts: { bodyMs: 1000 } });
  const answer = await exchange(gateway.port, post('content-length: 100\r\n', '{'));
  t.equal(answer.status, 408);
});

test('bodies beyond what a worker may hold are refused as overload', async (t) => {
  const { gateway } = await start(t, { limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } });
  const first = await open(gateway.port, post('content-length: 90000\r\n', '{'));
  const answer = await exchange(gateway.port, post('content-length: 20000\r\n', '{'));
  t.equal(answer.status, 503);
  t.match(answer.head, /\r\nretry-after: 1/);
  first.destroy();
  await gateway.line((line) => line.outcome === 'client_gone');
  t.equal((await exchange(gateway.port, chatRequest(body))).status, 200);
});

test('a drain lets calls finish, closes their connections, and takes no new ones', async (t) => {
  let answer: (() => void) | null = null;
  const upstream = await startRawUpstream(t, ({ socket }) => {
    answer = () => socket.write(jsonAnswer(200, completion));
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const socket = await open(gateway.port, chatRequest(body));
  const answered = readAnswer(socket);
  await upstream.request(0);
  const other = await open(gateway.port, '');
  const drained = gateway.gateway.drain();
  const closed = once(socket, 'close');
  // Workers stop to listen first, and end connections a moment later.
  for (let ending = false; !ending; ) {
    other.write(`GET /v1/models HTTP/1.1\r\nhost: x\r\n${authorization}\r\n`);
    ending = /\r\nconnection: close/i.test((await readAnswer(other)).head);
  }
  (answer as (() => void) | null)?.();
  const { head, status } = await answered;
  t.equal(status, 200);
  t.match(head, /\r\nconnection: close/i);
  await closed;
  await drained;
  await t.rejects(open(gateway.port, ''));
});
