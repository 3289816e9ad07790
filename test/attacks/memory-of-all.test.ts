import type { ServerResponse } from 'node:http';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { chatRequest, exchange, open, readAnswer } from '../support/raw-client.js';
import { type StagePlan, startTranslated } from '../support/translated.js';
import { jsonAnswer, type RawRequest, startHttpUpstream } from '../support/upstream.js';
import { heldBytes, heldWhen } from './held-bytes.js';

const mebibyte = 1024 * 1024;
const otherKey = 'sk-other';
const hi = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const keys = [testKey, otherKey].map((key, index) => ({
  id: `k${index}`,
  hash: hashKey(key),
  groups: ['default'],
}));

/** The bytes of a chat call of a key. */
function call(key: string, body: object = hi): string {
  const text = JSON.stringify(body);
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
  );
}

const generated = (text: string) =>
  JSON.stringify({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  });

/** A gateway whose model is served by a generateContent upstream, so that answers are translated. */
function start(t: Test, answer: StagePlan['answer'], limits: object, upstream = {}) {
  return startTranslated(t, {
    kind: 'generateContent',
    answer,
    upstream,
    config: { keys, limits, timeouts: { bodyGraceMs: 1000 } },
  });
}

async function isServed(t: Test, { port }: RunningGateway): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 10 }, () => exchange(port, call(otherKey))));
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200], 'the other key is served');
}

/**
 * Sends a request 24 times at once.
 * @param meanwhile repeated until all are answered
 * @returns the statuses of the answers, and the most bytes that the gateway held
 */
async function attackWith(
  gateway: RunningGateway,
  request: string | Buffer,
  meanwhile: () => Promise<void>,
): Promise<{ readonly statuses: readonly number[]; readonly most: number }> {
  const attack = Promise.all(Array.from({ length: 24 }, () => exchange(gateway.port, request)));
  let most = 0;
  let isOver = false;
  void attack.then(() => {
    isOver = true;
  });
  while (!isOver) {
    most = Math.max(most, heldBytes(gateway));
    await meanwhile();
  }
  return { statuses: (await attack).map(({ status }) => status), most };
}

const limits = { bodyBytes: 2 * mebibyte, bufferedBytes: 16 * mebibyte };

test('answers that are gathered count as they come: a key that asks for many large ones is refused, others are not', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 60000000\r\n\r\n';
  const start1 = generated('').slice(0, 40);
  const gateway = await start(
    t,
    ({ socket, body }: RawRequest) => {
      if (body.includes('hostile')) socket.write(`${head}${start1}${' '.repeat(mebibyte)}`);
      else socket.write(jsonAnswer(200, generated('hello')));
    },
    limits,
  );
  const hostile = call(testKey, { model: 'm', messages: [{ role: 'user', content: 'hostile' }] });
  const sockets = await Promise.all(Array.from({ length: 24 }, () => open(gateway.port, hostile)));
  const refused = await Promise.race(sockets.map(readAnswer));
  t.equal(refused.status, 503);
  t.match(refused.body, /The calls of your key hold as much memory/);
  t.match(refused.head, /retry-after: 1/);
  await isServed(t, gateway);
  t.ok(heldBytes(gateway) <= 4 * mebibyte, `${heldBytes(gateway)}`);
  t.ok(heldBytes(gateway) > mebibyte, 'and what has come is counted');
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (bytes) => bytes === 0);
  await eventually(() => gateway.upstream.sockets.size <= 12);
  t.pass('their upstream connections are gone');
});

test('one answer that is larger than the share of its key ends, its upstream is cancelled, and no other is asked', async (t) => {
  let cut = 0;
  const gateway = await start(
    t,
    ({ socket }: RawRequest) => {
      socket.on('close', () => cut++);
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 60000000\r\n\r\n{');
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 0x20)));
      };
      socket.on('drain', more);
      more();
    },
    limits,
  );
  const answer = await exchange(gateway.port, call(testKey));
  t.equal(answer.status, 503);
  t.match(JSON.parse(answer.body), { error: { code: 'overloaded' } });
  await heldWhen(gateway, (bytes) => bytes === 0);
  await eventually(() => cut > 0);
  t.equal(gateway.upstream.requests.length, 1);
});

async function fileServer(t: Test, answer: (response: ServerResponse) => void): Promise<string> {
  return (await startHttpUpstream(t, (_, response) => answer(response))).origin;
}

const withImage = (url: string) =>
  call(testKey, {
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  });

test('media of a server that hardly answers take up next to nothing, and come too slowly', async (t) => {
  const url = await fileServer(t, (response) => {
    response.writeHead(200, { 'content-type': 'image/png', 'content-length': 400_000 });
    const timer = setInterval(() => response.write('x'), 200);
    response.on('close', () => clearInterval(timer));
  });
  const gateway = await start(t, jsonAnswer(200, generated('hello')), limits, { fetchPrivate: true });
  const sockets = await Promise.all(
    Array.from({ length: 32 }, (_, i) => open(gateway.port, withImage(`${url}/${i}.png`))),
  );
  const answers = Promise.all(sockets.map(readAnswer));
  await isServed(t, gateway);
  await heldWhen(gateway, (bytes) => bytes > 0);
  t.ok(heldBytes(gateway) <= 32 * 96 * 1024, `${heldBytes(gateway)}`);
  for (const { status, body } of await answers) {
    t.equal(status, 400);
    t.match(body, /it comes too slowly/);
  }
  t.equal(heldBytes(gateway), 0);
});

test('media that come are counted for their key alone', async (t) => {
  const url = await fileServer(t, (response) => {
    response.writeHead(200, { 'content-type': 'image/png', 'content-length': 400_000 });
    response.write(Buffer.alloc(300_000));
  });
  const gateway = await start(
    t,
    jsonAnswer(200, generated('hello')),
    { bodyBytes: mebibyte, bufferedBytes: 16 * mebibyte, leastBodyRate: 0 },
    { fetchPrivate: true },
  );
  const sockets = await Promise.all(
    Array.from({ length: 32 }, (_, i) => open(gateway.port, withImage(`${url}/${i}.png`))),
  );
  const first = await Promise.race(sockets.map(readAnswer));
  t.equal(first.status, 503);
  t.match(first.body, /The calls of your key hold as much memory/);
  await isServed(t, gateway);
  t.ok(heldBytes(gateway) <= 4 * mebibyte, `${heldBytes(gateway)}`);
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (bytes) => bytes === 0);
});

test('bodies that unpack to a thousand times their size are decoded within the share of their key', async (t) => {
  const gateway = await start(t, jsonAnswer(200, generated('hello')), limits);
  const bomb = chatRequest(gzipSync(Buffer.alloc(64 * mebibyte, 0x20)), 'content-encoding: gzip\r\n');
  const { statuses, most } = await attackWith(gateway, bomb, () => isServed(t, gateway));
  for (const status of statuses) t.ok(status === 413 || status === 503, `${status}`);
  t.ok(most <= 4.5 * mebibyte, `${most}`);
  t.equal(heldBytes(gateway), 0);
});

test('few decoders with large windows are open, and bodies that want more wait while those of other keys are decoded', async (t) => {
  const gateway = await start(t, jsonAnswer(200, generated('hello')), {
    bodyBytes: mebibyte / 4,
    bufferedBytes: 64 * mebibyte,
    bufferedBytesPerKey: 48 * mebibyte,
  });
  const params = { [constants.BROTLI_PARAM_QUALITY]: 3, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const coded = (text: Buffer | string, key: string) => {
    const body = brotliCompressSync(text, { params });
    const head =
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-encoding: br\r\ncontent-length: ${body.length}\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), body]);
  };
  const bomb = coded(Buffer.alloc(64 * mebibyte, 0x20), testKey);
  const { statuses, most } = await attackWith(gateway, bomb, async () => {
    t.equal((await exchange(gateway.port, coded(JSON.stringify(hi), otherKey))).status, 200);
  });
  t.same(new Set(statuses), new Set([413]));
  t.ok(most <= mebibyte, `${most}`);
  t.equal(heldBytes(gateway), 0);
});
