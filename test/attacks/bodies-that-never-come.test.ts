import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { exchange, open, readAnswer } from '../support/raw-client.js';
import { goodAnswer, startRouted } from '../support/routed.js';
import { heldBytes, heldWhen } from './held-bytes.js';

const mebibyte = 1024 * 1024;
const otherKey = 'sk-other';
const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });

interface HeadOptions {
  readonly path?: string;
  readonly type?: string;
  readonly framing?: string;
  readonly key?: string | null;
  readonly lines?: string;
  readonly method?: string;
}

function head(options: HeadOptions = {}): string {
  const { path = '/v1/chat/completions', type = 'application/json', key = testKey } = options;
  const { framing = `content-length: ${32 * mebibyte}`, lines = '', method = 'POST' } = options;
  const credentials = key === null ? '' : `authorization: Bearer ${key}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\n${credentials}content-type: ${type}\r\n${lines}${framing}\r\n\r\n`;
}

const call = (key: string, more = '') =>
  head({ key, framing: `content-length: ${text.length}`, lines: more }) + text;
const chunked = 'transfer-encoding: chunked';
const form = 'multipart/form-data; boundary=b';

/** A gateway with small bounds, one group with two keys, and a model of every kind. */
async function start(t: Test, more: Record<string, unknown> = {}): Promise<RunningGateway> {
  const { gateway } = await startRouted(t, [goodAnswer], {
    protocols: ['chat', 'responses', 'messages', 'audio', 'images'],
    config: {
      limits: { bodyBytes: 32 * mebibyte, bufferedBytes: 64 * mebibyte },
      keys: [testKey, otherKey].map((key, index) => ({
        id: `k${index}`,
        hash: hashKey(key),
        groups: ['default'],
      })),
      ...more,
    },
  });
  return gateway;
}

/** Opens that many hostile requests, and waits until each has been read. */
async function besiege(t: Test, { port }: RunningGateway, count: number, bytes: string): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => open(port, bytes)));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

async function othersAreServed(t: Test, { port }: RunningGateway, what: string): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 10 }, () => exchange(port, call(otherKey))));
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200], what);
}

const attacks: Readonly<Record<string, string>> = {
  'announced bodies of which a byte comes': `${head()}{`,
  'announced bodies of which nothing comes': head(),
  'chunked bodies of one byte': `${head({ framing: chunked })}1\r\n{\r\n`,
  'chunked bodies in a chunk of 32 MiB': `${head({ framing: chunked })}2000000\r\n{`,
  'announced forms': `${head({ path: '/v1/audio/transcriptions', type: form })}--b\r\n`,
  'chunked forms': `${head({ path: '/v1/audio/transcriptions', type: form, framing: chunked })}3\r\n--b\r\n`,
  'forms that are read whole': `${head({ path: '/v1/images/edits', type: form })}--b\r\n`,
  'coded bodies': `${head({ lines: 'content-encoding: gzip\r\n' })}\x1f`,
  'bodies of messages': `${head({ path: '/v1/messages', lines: `x-api-key: ${testKey}\r\nanthropic-version: 2023-06-01\r\n` })}{`,
};

for (const [what, bytes] of Object.entries(attacks)) {
  test(`200 ${what} take up next to nothing, and others are served`, async (t) => {
    const gateway = await start(t);
    await besiege(t, gateway, 32, bytes);
    await othersAreServed(t, gateway, 'with 32');
    await besiege(t, gateway, 168, bytes);
    await othersAreServed(t, gateway, 'with 200');
    t.ok(heldBytes(gateway) <= 200 * 32 * 1024, `${heldBytes(gateway)} bytes are held`);
    t.equal((await exchange(gateway.port, call(testKey))).status, 200, 'and so is the key itself');
  });
}

test('bodies that fill the share of their key are refused, and those of others are not', async (t) => {
  const gateway = await start(t, { limits: { bodyBytes: 4 * mebibyte, bufferedBytes: 16 * mebibyte } });
  const megabyte = `${head({ framing: `content-length: ${4 * mebibyte}` })}${' '.repeat(mebibyte)}`;
  const sockets = await besiege(t, gateway, 16, megabyte);
  const answers: string[] = [];
  for (const socket of sockets) socket.on('data', (data) => answers.push(data.toString()));
  await Promise.race(sockets.map((socket) => once(socket, 'data')));
  t.match(answers[0], /^HTTP\/1.1 503 /);
  t.match(answers[0], /retry-after: 1/);
  t.match(answers[0], /The calls of your key hold as much memory/);
  t.ok(heldBytes(gateway) <= 4 * mebibyte, `${heldBytes(gateway)} bytes are held`);
  await othersAreServed(t, gateway, 'beside a key at its bound');
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (bytes) => bytes === 0);
  t.equal((await exchange(gateway.port, call(testKey))).status, 200, 'the key is served again');
});

test('bodies without a key, of unknown paths and of wrong methods are never kept', async (t) => {
  const gateway = await start(t);
  const one = ' '.repeat(64 * 1024);
  for (const [options, status] of [
    [{ key: null }, 401],
    [{ key: 'sk-wrong' }, 401],
    [{ path: '/v1/nothing' }, 404],
    [{ method: 'DELETE' }, 405],
    [{ method: 'GET', path: '/v1/models' }, 200],
  ] as const) {
    const socket = await open(gateway.port, head(options) + one);
    t.equal((await readAnswer(socket)).status, status);
    t.equal(heldBytes(gateway), 0);
    socket.destroy();
  }
  await othersAreServed(t, gateway, 'after them');
});

test('a key has its calls at once and its requests counted before their bodies come', async (t) => {
  const gateway = await start(t, {
    keys: [testKey, otherKey].map((key, index) => ({
      id: `k${index}`,
      hash: hashKey(key),
      groups: ['default'],
      ...(index === 0 ? { limits: { concurrent: 4 } } : {}),
    })),
  });
  const sockets = await besiege(t, gateway, 4, `${head()}{`);
  await heldWhen(gateway, (bytes) => bytes > 0);
  const refused = await readAnswer(await open(gateway.port, head()));
  t.equal(refused.status, 429, 'the fifth is refused before its body');
  t.match(refused.body, /4 calls at once for your key/);
  await othersAreServed(t, gateway, 'beside it');
  for (const socket of sockets) socket.destroy();
  await gateway.line(() => gateway.lines.filter(({ outcome }) => outcome === 'client_gone').length === 4);
  t.equal((await exchange(gateway.port, call(testKey))).status, 200);
});

test('the requests of a key are counted whatever becomes of their bodies, but for our own 408 and 503', async (t) => {
  const gateway = await start(t, {
    limits: { bodyBytes: 32 * mebibyte, bufferedBytes: 32 * mebibyte, leastBodyRate: 1024 },
    timeouts: { bodyGraceMs: 1000 },
    keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], limits: { requestsPerMinute: 3 } }],
  });
  const slow = await readAnswer(await open(gateway.port, `${head()}{`));
  t.equal(slow.status, 408);
  t.match(slow.head, /connection: close/i);
  t.equal((await exchange(gateway.port, call(testKey))).status, 200);
  const bad = head({ framing: 'content-length: 1' });
  t.equal((await exchange(gateway.port, `${bad}x`)).status, 400);
  const leaver = await open(gateway.port, `${head()}{`);
  await heldWhen(gateway, (bytes) => bytes > 0);
  leaver.destroy();
  await gateway.line(({ outcome }) => outcome === 'client_gone');
  t.equal(
    (await exchange(gateway.port, call(testKey))).status,
    429,
    'the third was that of the client that left',
  );
});
