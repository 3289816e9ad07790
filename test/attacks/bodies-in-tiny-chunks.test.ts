import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { goodAnswer } from '../support/routed.js';
import { startRawUpstream } from '../support/upstream.js';

/* uWS hands over each chunk by itself: of millions that come at once, nothing else of the worker gets its turn. */

const pieces = 100_000;
const head = (path: string, type: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ncontent-type: ${type}\r\n` +
  'transfer-encoding: chunked\r\n\r\n';
const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(pieces) }] });
const json = `${head('/v1/chat/completions', 'application/json')}${bytewise(text)}0\r\n\r\n`;
const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n';
const form = `${head('/v1/audio/transcriptions', 'multipart/form-data; boundary=b')}${bytewise(`${part + text}\r\n--b--\r\n`)}0\r\n\r\n`;

function bytewise(body: string): string {
  return [...body].map((byte) => `1\r\n${byte}\r\n`).join('');
}

/** @returns what comes of the answer first */
async function send(port: number, bytes: Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (piece: string) => {
    heard = piece;
    socket.destroy();
  });
  socket.write(bytes);
  await once(socket, 'close');
  return heard;
}

for (const [name, request] of Object.entries({ json, form })) {
  test(`of eight million one-byte chunks at once a part is refused, and others are served: ${name}`, async (t) => {
    const upstream = await startRawUpstream(t, goodAnswer);
    const models = { m: { protocols: ['chat', 'audio'], targets: [{ upstream: 'u0', model: 'm' }] } };
    const { port } = await startGateway(t, { upstreams: [upstream.url], config: { models } });
    if (request === json)
      t.match(await send(port, Buffer.from(json)), /^HTTP\/1.1 200/, 'one such body passes');
    const bytes = Buffer.from(request);
    const answers = Array.from({ length: 80 }, () => send(port, bytes));
    const refused = (await Promise.all(answers)).filter((answer) => answer.includes('too many small chunks'));
    t.ok(refused.length > 0, `${refused.length} of ${answers.length} refused`);
    t.match(refused[0], /^HTTP\/1.1 400/);
    t.match(refused[0], /connection: close/i);
    t.match(await send(port, Buffer.from(json)), /^HTTP\/1.1 200/, 'and so does one after them');
  });
}
