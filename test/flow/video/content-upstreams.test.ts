import { gzipSync } from 'node:zlib';
import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { testKey } from '../../support/gateway.js';
import { open, readAnswer } from '../../support/raw-client.js';
import { chunk, lastChunk } from '../../support/upstream.js';
import { type ContentStage, fileAnswer, type SourceKind, startContent } from './contents.js';

const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7 + (index >> 8)) % 251));
const kinds: readonly SourceKind[] = ['chat', 'generic'];
const rangeOf = (head: string) => /^range: (.*)$/m.exec(head)?.[1]?.trim();

for (const kind of kinds) {
  test(`${kind}: an upstream that knows no ranges is cut to them here`, async (t) => {
    const { get, contents } = await startContent(t, ({ socket }) => socket.write(fileAnswer(bytes)), {
      kind,
    });
    for (const [range, first, last] of [
      ['bytes=0-9', 0, 9],
      ['bytes=50000-', 50_000, 99_999],
      ['bytes=-10', 99_990, 99_999],
      ['bytes=99999-', 99_999, 99_999],
      ['bytes=0-', 0, 99_999],
    ] as const) {
      const heard = await get({ range });
      t.equal(heard.status, 206, range);
      t.equal(heard.headers.get('content-range'), `bytes ${first}-${last}/100000`);
      t.equal(heard.headers.get('content-length'), String(last - first + 1));
      t.ok(heard.bytes.equals(bytes.subarray(first, last + 1)), range);
      t.equal(rangeOf(contents().at(-1)?.head ?? ''), range, 'it was asked');
    }
    const beyond = await get({ range: 'bytes=100000-' });
    t.equal(beyond.status, 416);
    t.equal(beyond.headers.get('content-range'), 'bytes */100000');
  });

  test(`${kind}: a part, and a refusal of it, are handed on`, async (t) => {
    const { get } = await startContent(
      t,
      ({ socket, head }) => {
        const range = rangeOf(head);
        if (range === 'bytes=9-')
          socket.write(fileAnswer(Buffer.alloc(0), 416, 'content-range: bytes */9\r\n'));
        else if (range === 'bytes=8-') socket.write(fileAnswer(Buffer.from('no range'), 416));
        else if (range === 'bytes=5-6')
          socket.write(fileAnswer(Buffer.from('56'), 206, 'content-range: bytes 5-6/*\r\n'));
        else socket.write(fileAnswer(Buffer.from('5678'), 206, 'content-range: bytes 5-8/9\r\n'));
      },
      { kind },
    );
    const part = await get({ range: 'bytes=5-' });
    t.equal(part.status, 206);
    t.equal(part.text, '5678');
    t.equal(part.headers.get('content-range'), 'bytes 5-8/9');
    const unknown = await get({ range: 'bytes=5-6' });
    t.equal(unknown.headers.get('content-range'), 'bytes 5-6/*');
    t.equal(unknown.text, '56');
    const beyond = await get({ range: 'bytes=9-' });
    t.equal(beyond.status, 416);
    t.equal(beyond.headers.get('content-range'), 'bytes */9');
    t.match(beyond.json, { error: { code: 'range_not_satisfiable' } });
    t.equal((await get({ range: 'bytes=8-' })).status, 416);
  });

  test(`${kind}: a part that was not asked for, or is none, is no answer`, async (t) => {
    const lines = [
      '',
      'content-range: bytes 5-8/9\r\n',
      'content-range: bytes 8-5/9\r\n',
      'content-range: nonsense\r\n',
    ];
    const { get } = await startContent(
      t,
      ({ socket }, index) => socket.write(fileAnswer(Buffer.from('5678'), 206, lines[index])),
      { kind },
    );
    t.equal((await get({ range: 'bytes=5-' })).status, 502);
    t.equal((await get()).status, 502, 'without a range');
    t.equal((await get({ range: 'bytes=5-' })).status, 502);
    t.equal((await get({ range: 'bytes=5-' })).status, 502);
  });

  test(`${kind}: a part that begins elsewhere is no answer`, async (t) => {
    let lines = '';
    const part = Buffer.alloc(10);
    const { get } = await startContent(t, ({ socket }) => socket.write(fileAnswer(part, 206, lines)), {
      kind,
    });
    for (const [range, told, status] of [
      ['bytes=0-9', '500-509/1000', 502],
      ['bytes=0-9', '500-509/*', 502],
      ['bytes=0-', '990-999/1000', 502],
      ['bytes=0-99', '0-9/1000', 206],
      ['bytes=-10', '0-9/1000', 502],
      ['bytes=-10', '980-989/1000', 502],
      ['bytes=-10', '990-999/1000', 206],
      ['bytes=-99', '0-9/10', 206],
      ['bytes=-10', '990-999/*', 206],
    ] as const) {
      lines = `content-range: bytes ${told}\r\n`;
      const heard = await get({ range });
      t.equal(heard.status, status, `${range} ${told}`);
      if (status === 206) t.equal(heard.headers.get('content-range'), `bytes ${told}`);
      else t.match(heard.json, { error: { code: 'upstream_error' } });
    }
  });

  test(`${kind}: a video without a length passes as it comes`, async (t) => {
    const { get } = await startContent(
      t,
      ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: video/webm\r\ntransfer-encoding: chunked\r\n\r\n');
        for (const letter of 'abc') socket.write(chunk(letter.repeat(1000)));
        socket.write(lastChunk);
      },
      { kind },
    );
    for (const range of [undefined, 'bytes=0-9']) {
      const heard = await get(range === undefined ? {} : { range });
      t.equal(heard.status, 200);
      t.equal(heard.text, 'a'.repeat(1000) + 'b'.repeat(1000) + 'c'.repeat(1000));
      t.equal(heard.headers.get('content-type'), 'video/webm');
      t.equal(heard.headers.get('content-length'), null);
    }
    const head = await get({}, { method: 'HEAD' });
    t.equal(head.status, 200);
    t.equal(head.headers.get('content-length'), null);
  });

  test(`${kind}: an empty video is one`, async (t) => {
    const { get } = await startContent(t, ({ socket }) => socket.write(fileAnswer(Buffer.alloc(0))), {
      kind,
    });
    const heard = await get();
    t.equal(heard.status, 200);
    t.equal(heard.headers.get('content-length'), '0');
    t.equal((await get({ range: 'bytes=0-' })).status, 416);
    t.equal((await get({}, { method: 'HEAD' })).headers.get('content-length'), '0');
  });

  test(`${kind}: a compressed answer is unpacked, and an unknown coding refused`, async (t) => {
    const { get, contents } = await startContent(
      t,
      ({ socket }, index) => {
        const coding = index < 3 ? 'gzip' : 'zstd';
        socket.write(fileAnswer(gzipSync(bytes), 200, `content-encoding: ${coding}\r\n`));
      },
      { kind },
    );
    for (const range of [undefined, 'bytes=0-9']) {
      const heard = await get(range === undefined ? {} : { range });
      t.equal(heard.status, 200);
      t.ok(heard.bytes.equals(bytes));
      t.equal(heard.headers.get('content-encoding'), null);
    }
    t.equal((await get({}, { method: 'HEAD' })).headers.get('content-length'), null);
    t.match(contents()[0]?.head, /\r\naccept-encoding: identity(?:\r\n|$)/);
    const refused = await get();
    t.equal(refused.status, 502);
    t.match(refused.json, { error: { code: 'upstream_error' } });
  });

  test(`${kind}: a part of a compressed answer is no part of the video`, async (t) => {
    const part = gzipSync(bytes).subarray(10, 20);
    const lines = 'content-encoding: gzip\r\ncontent-range: bytes 10-19/500\r\n';
    const { get } = await startContent(t, ({ socket }) => socket.write(fileAnswer(part, 206, lines)), {
      kind,
    });
    t.equal((await get({ range: 'bytes=10-19' })).status, 502);
  });

  test(`${kind}: statuses of the upstream become those of a video that cannot be had`, async (t) => {
    const statuses = [404, 410, 401, 403, 429, 500, 503, 204, 304, 302];
    const { get } = await startContent(
      t,
      ({ socket }, index) =>
        socket.write(fileAnswer(Buffer.from('{"secret":1}'), statuses[index], 'retry-after: 7\r\n')),
      { kind },
    );
    const told: Readonly<Record<number, readonly [status: number, code: string]>> = {
      404: [404, 'not_found'],
      410: [404, 'not_found'],
      429: [429, 'rate_limit_exceeded'],
      503: [503, 'overloaded'],
    };
    for (const status of statuses) {
      const heard = await get();
      const [expected, code] = told[status] ?? [502, 'upstream_error'];
      t.equal(heard.status, expected, `${status}`);
      t.match(heard.json, { error: { code } });
      t.equal(heard.headers.get('retry-after'), status === 429 || status === 503 ? '7' : null, `${status}`);
      t.notMatch(heard.text, 'secret');
      t.equal(heard.headers.get('etag'), null);
    }
  });

  test(`${kind}: an upstream that dies before the first byte is 502, and one that falls silent 504`, async (t) => {
    let isSilent = false;
    const { get } = await startContent(t, ({ socket }) => void (isSilent ? null : socket.resetAndDestroy()), {
      kind,
      config: { timeouts: { firstByteMs: 1500 } },
    });
    t.equal((await get()).status, 502);
    isSilent = true;
    t.equal((await get()).status, 504);
  });

  test(`${kind}: an upstream that dies in the middle cuts the client's connection`, async (t) => {
    const { gateway, path } = await startContent(
      t,
      ({ socket }, index) => {
        const half = fileAnswer(bytes).subarray(0, 50_000);
        if (index === 0) socket.write(half, () => setImmediate(() => socket.resetAndDestroy()));
        else if (index === 1) socket.end(half);
        else {
          socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
          socket.write(chunk('x'.repeat(40_000)), () => setImmediate(() => socket.end()));
        }
      },
      { kind },
    );
    for (const round of [0, 1, 2]) {
      const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${testKey}` } });
      t.equal(answer.status, 200);
      t.equal(answer.headers.get('content-length'), round === 2 ? null : '100000');
      await t.rejects(answer.arrayBuffer(), `round ${round}`);
    }
    const lines = await eventually(() => gateway.lines.filter((line) => line.path === path), {
      fits: ({ length }) => length === 3,
      everyMs: 10,
    });
    for (const line of lines)
      t.match(line, { outcome: 'upstream_error', error: 'upstream_error', cause: String });
  });

  test(`${kind}: a client that leaves ends the transfer`, async (t) => {
    const stage: ContentStage = await startContent(
      t,
      ({ socket }) => socket.write(fileAnswer(bytes).subarray(0, 60_000)),
      { kind },
    );
    const client = await open(
      stage.gateway.port,
      `GET ${stage.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`,
    );
    await eventually(() => stage.contents().length, {
      fits: (count) => count === 1,
      everyMs: 10,
    });
    client.destroy();
    const { socket } = stage.contents()[0] ?? {};
    await eventually(() => socket !== undefined && stage.upstream.sockets.has(socket), {
      fits: (isOpen) => !isOpen,
      everyMs: 10,
    });
    t.match(await stage.gateway.line(({ outcome }) => outcome === 'client_gone'), { path: stage.path });
  });
}

test('types are handed on where they are of images or videos, and nothing else', async (t) => {
  const types = [
    'video/quicktime',
    'image/png',
    'text/html',
    'video/mp4; codecs="a"',
    'application/octet-stream',
    '',
  ];
  const { get } = await startContent(t, ({ socket }, index) =>
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: ${types[index]}\r\nset-cookie: a=b\r\nserver: x\r\netag: "theirs"\r\ncontent-length: 1\r\n\r\nx`,
    ),
  );
  for (const expected of [
    'video/quicktime',
    'image/png',
    'video/mp4',
    'video/mp4',
    'video/mp4',
    'video/mp4',
  ]) {
    const heard = await get();
    t.equal(heard.headers.get('content-type'), expected);
    t.equal(heard.headers.get('set-cookie'), null);
    t.match(heard.headers.get('etag'), /-video"$/);
  }
});

test('a reader that stops takes no more from the upstream than what fits between', async (t) => {
  const total = 64 * 1024 * 1024;
  let taken = 0;
  let stalled = false;
  const stage = await startContent(t, ({ socket }) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: ${total}\r\n\r\n`);
    const piece = Buffer.alloc(256 * 1024, 7);
    const more = (): void => {
      while (taken < total) {
        taken += piece.length;
        if (!socket.write(piece)) {
          stalled = true;
          socket.once('drain', () => {
            stalled = false;
            more();
          });
          return;
        }
      }
    };
    more();
  });
  const client = await open(
    stage.gateway.port,
    `GET ${stage.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`,
  );
  client.pause();
  let before = -1;
  let same = 0;
  await eventually(
    () => {
      same = stalled && taken === before ? same + 1 : 0;
      before = taken;
      return same;
    },
    { fits: (count) => count >= 20, everyMs: 10 },
  );
  t.ok(taken < 24 * 1024 * 1024, `${taken} bytes were taken from the upstream`);
  let read = 0;
  client.on('data', (data: Buffer) => {
    read += data.length;
  });
  client.resume();
  await eventually(() => read, { fits: (count) => count > total, everyMs: 10 });
  t.match(await stage.gateway.line(({ path }) => path === stage.path), {
    outcome: 'complete',
    bytesOut: total,
  });
  client.destroy();
});

test('two answers on one connection: the next request begins where the video ended', async (t) => {
  const { gateway, path } = await startContent(t, ({ socket }) =>
    socket.write(fileAnswer(Buffer.from('abc'))),
  );
  const request = (range: string) =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n${range}\r\n`;
  const client = await open(gateway.port, request(''));
  t.equal((await readAnswer(client)).body, 'abc');
  client.write(request('range: bytes=1-1\r\n'));
  t.equal((await readAnswer(client)).body, 'b');
  client.destroy();
});

test('a part that is longer or shorter than its range is none', async (t) => {
  const range = 'content-range: bytes 0-9/100000\r\n';
  const { get, gateway, path } = await startContent(t, ({ socket }, index) => {
    const head = `HTTP/1.1 206 X\r\ntransfer-encoding: chunked\r\n${range}\r\n`;
    if (index === 0) socket.write(fileAnswer(bytes, 206, range));
    else if (index === 1) socket.write(fileAnswer(bytes.subarray(0, 9), 206, range));
    else if (index === 2) socket.write(head + chunk('0123456789') + lastChunk);
    else if (index === 3) socket.write(head + chunk('01234567') + lastChunk);
    else socket.write(head + chunk('01234567') + chunk('89ab') + lastChunk);
  });
  const asked = { range: 'bytes=0-9' };
  t.equal((await get(asked)).status, 502);
  t.equal((await get(asked)).status, 502);
  const chunked = await get(asked);
  t.equal(chunked.status, 206);
  t.equal(chunked.text, '0123456789');
  t.equal(chunked.headers.get('content-length'), '10');
  for (const what of ['shorter', 'longer']) {
    const headers = { ...asked, authorization: `Bearer ${testKey}` };
    const read = async () => (await fetch(gateway.url + path, { headers })).arrayBuffer();
    await t.rejects(read(), what);
  }
});
