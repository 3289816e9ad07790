import type { Socket } from 'node:net';
import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { open, readAnswer } from '../support/raw-client.js';
import { goodAnswer, startRouted } from '../support/routed.js';

const mebibyte = 1024 * 1024;
const form = 'multipart/form-data; boundary=b';
const part =
  '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\ncontent-disposition: form-data; name="file"; ' +
  'filename="a.mp3"\r\ncontent-type: audio/mpeg\r\n\r\n';

function head(path: string, type: string, framing: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nx-api-key: ${testKey}\r\n` +
    `anthropic-version: 2023-06-01\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`
  );
}

async function start(t: Test, timeouts: object, limits: object = {}): Promise<RunningGateway> {
  const { gateway } = await startRouted(t, [goodAnswer], {
    protocols: ['chat', 'messages', 'audio'],
    config: { limits, timeouts },
  });
  return gateway;
}

/** Sends a byte now and then until the connection ends. */
function drip(t: Test, socket: Socket, bytes: string): void {
  const timer = setInterval(() => socket.write(bytes), 200);
  socket.on('close', () => clearInterval(timer));
  t.teardown(() => clearInterval(timer));
}

const kinds: readonly (readonly [string, string, string, string, string])[] = [
  ['an announced body', '/v1/chat/completions', 'application/json', `content-length: ${mebibyte}`, ' '],
  ['a chunked body', '/v1/chat/completions', 'application/json', 'transfer-encoding: chunked', '1\r\n \r\n'],
  ['a body of messages', '/v1/messages', 'application/json', `content-length: ${mebibyte}`, ' '],
  ['a form', '/v1/audio/transcriptions', form, `content-length: ${mebibyte}`, 'x'],
];

for (const [what, path, type, framing, bytes] of kinds) {
  test(`${what} that comes byte by byte ends with 408 in the caller's words`, async (t) => {
    const { port } = await start(t, { bodyGraceMs: 1000 });
    const socket = await open(port, head(path, type, framing));
    if (type === form) socket.write(part);
    drip(t, socket, bytes);
    const answer = await readAnswer(socket);
    t.equal(answer.status, 408);
    t.match(answer.head, /connection: close/i);
    t.match(answer.body, /too slowly: it has to bring 1024 bytes a second/);
    if (path === '/v1/messages') t.match(answer.body, /"type":"error"/);
    socket.destroy();
  });
}

test('a body that comes fast at first and then byte by byte is cut as well', async (t) => {
  const { port } = await start(t, { bodyGraceMs: 1000 });
  const socket = await open(
    port,
    head('/v1/chat/completions', 'application/json', `content-length: ${4 * mebibyte}`) +
      ' '.repeat(mebibyte),
  );
  drip(t, socket, ' ');
  t.equal((await readAnswer(socket)).status, 408);
  socket.destroy();
});

test('a form on its way to an upstream is cut as well, and the upstream hears of it', async (t) => {
  const { gateway, upstreams } = await startRouted(t, [() => {}], {
    protocols: ['audio'],
    config: { timeouts: { bodyGraceMs: 1000 } },
  });
  const socket = await open(
    gateway.port,
    head('/v1/audio/transcriptions', form, `content-length: ${8 * mebibyte}`) +
      part +
      'x'.repeat(2 * mebibyte),
  );
  drip(t, socket, 'x');
  t.equal((await readAnswer(socket)).status, 408);
  socket.destroy();
  await eventually(() => upstreams[0]?.sockets.size === 0);
  t.pass('its connection has ended');
});

test('a body above the least rate is taken, however long that takes, and none is cut where there is no rate', async (t) => {
  for (const limits of [{ leastBodyRate: 20 }, { leastBodyRate: 0 }]) {
    const { port } = await start(t, { bodyGraceMs: 1000 }, limits);
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(400) }] });
    const socket = await open(
      port,
      head('/v1/chat/completions', 'application/json', `content-length: ${body.length}`),
    );
    const answer = readAnswer(socket);
    for (let at = 0; at < body.length; at += 30) {
      socket.write(body.slice(at, at + 30));
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    t.equal((await answer).status, 200);
    socket.destroy();
  }
});
