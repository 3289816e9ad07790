import { test } from 'tap';
import { startContent } from '../flow/video/contents.js';
import { startGateway } from '../support/gateway.js';
import { chunk, jsonAnswer, lastChunk, startRawUpstream } from '../support/upstream.js';
import { callFace, otherFaces } from './account-answers.js';

const key = 'sk-own-upstream-key-Zq81xW';
const error = JSON.stringify({ error: { message: `Incorrect API key provided: ${key}` } });
const wide = Buffer.from(`\ufeff${error}`, 'utf16le');
/** A beginning that is no text. */
const film = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42'), Buffer.alloc(700, 0xa5)]);

/** What an upstream puts in place of a film or a sound, in the pieces in which it comes. */
const pieces: readonly (readonly [string, readonly (string | Buffer)[]])[] = [
  ['whole', [error]],
  ['behind a line feed', ['\n', error]],
  ['behind a byte order mark', [`\ufeff${error}`]],
  ['cut', [error.slice(0, 20), error.slice(20)]],
  ['a letter at a time', [...error]],
  ['a short text', [`key ${key}`]],
  ['a text that is cut', ['Incorrect ', `API key provided: ${key}`]],
  ['a text with another letter', [`Clé non valide: ${key}`]],
  ['in UTF-16', [wide]],
  ['in UTF-16 of the other order', [Buffer.from(wide).swap16()]],
  ['far behind in a text', [`${'x'.repeat(5000)} ${key}`]],
  ['far behind in two pieces', ['x'.repeat(5000), ` ${key}`]],
  ['behind a film', [film, `....${key}....`]],
];

const inChunks = (parts: readonly (string | Buffer)[], head: string): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${head}\r\ntransfer-encoding: chunked\r\n\r\n`),
    ...parts.map((part) =>
      Buffer.concat([
        Buffer.from(`${Buffer.byteLength(part).toString(16)}\r\n`),
        Buffer.from(part),
        Buffer.from('\r\n'),
      ]),
    ),
    Buffer.from(lastChunk),
  ]);

function holdsKey(bytes: Buffer): boolean {
  return [bytes, bytes.subarray(1)].some(
    (each) => each.includes(key) || each.toString('utf16le').includes(key),
  );
}

test('no download of a video holds our key, however its upstream puts it', async (t) => {
  let answer: Buffer = Buffer.alloc(0);
  const routing = { failures: 10_000, minimumCalls: 10_000 };
  const { gateway, path, get } = await startContent(t, ({ socket }) => void socket.write(answer), {
    upstream: { apiKeys: [key] },
    config: { routing },
  });
  for (const type of ['application/json', 'text/plain', 'video/mp4', 'application/octet-stream']) {
    for (const [how, parts] of pieces) {
      answer = inChunks(parts, `200 OK\r\ncontent-type: ${type}`);
      const heard = await get().catch(() => null);
      t.notOk(heard !== null && holdsKey(heard.bytes), `${type}: ${how}`);
      if (parts[0] !== film) t.equal(heard?.status, 502, `${type}: ${how}`);
    }
    const rest = error.slice(1);
    answer = inChunks(
      [rest],
      `206 Partial Content\r\ncontent-type: ${type}\r\ncontent-range: bytes 1-${rest.length}/${error.length}`,
    );
    const heard = await get({ range: 'bytes=1-' });
    t.equal(heard.status, 502, `a part as ${type}`);
    t.notMatch(heard.text, key);
  }
  answer = inChunks([film], `200 OK\r\ncontent-type: video/${key}`);
  const heard = await get();
  t.equal(heard.status, 200);
  t.equal(heard.headers.get('content-type'), 'video/mp4', 'nor does its type');
  t.same(heard.bytes, film);
  t.notMatch(JSON.stringify(gateway.lines), key);
  t.match(path, /content/);
});

test('a film of a few bytes, or in pieces of one, passes', async (t) => {
  let parts: readonly (string | Buffer)[] = [];
  const { get } = await startContent(t, ({ socket }) => {
    socket.write(inChunks(parts, '200 OK\r\ncontent-type: video/mp4'));
  });
  const all = Buffer.concat([film, film]);
  for (const each of [[Buffer.from('\0')], [], [...all].map((byte) => Buffer.from([byte])), [all]]) {
    parts = each;
    t.same((await get()).bytes, Buffer.concat(each));
  }
});

test('no sound holds our key, however its upstream puts it', async (t) => {
  let answer: Buffer = Buffer.alloc(0);
  const upstream = await startRawUpstream(t, ({ socket }) => void socket.write(answer));
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { apiKeys: [key] },
    config: { models: { m: { protocols: ['audio'], targets: [{ upstream: 'u0' }] } } },
  });
  const [face] = otherFaces.filter(({ name }) => name === 'speech');
  if (face === undefined) throw new Error('no face');
  for (const type of ['audio/mpeg', 'application/octet-stream', 'text/plain']) {
    for (const [how, parts] of pieces) {
      answer = inChunks(parts, `200 OK\r\ncontent-type: ${type}`);
      const { status, body } = await callFace(port, face);
      t.notOk(holdsKey(Buffer.from(body, 'latin1')), `${type}: ${how}`);
      if (parts[0] !== film) t.equal(status, 502, `${type}: ${how}`);
    }
  }
  answer = inChunks([film, film], '200 OK\r\ncontent-type: audio/mpeg');
  t.equal((await callFace(port, face)).status, 200);
  answer = Buffer.from(jsonAnswer(200, chunk(key)));
  t.equal((await callFace(port, face)).status, 502);
});
