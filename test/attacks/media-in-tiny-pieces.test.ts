import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'tap';
import { type Downloaded, download } from '../../src/upstream/download.js';
import { unboundedDownload } from '../support/unbounded-download.js';

test('a file that comes a byte at a time is kept in a few blocks, and all of it is there', async (t) => {
  const bytes = 100_000;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n');
      let chunks = '';
      for (let at = 0; at < bytes; at++) chunks += `1\r\n${String.fromCharCode(0x61 + (at % 26))}\r\n`;
      socket.end(`${chunks}0\r\n\r\n`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  let most = 0;
  const { concat } = Buffer;
  Buffer.concat = ((list: readonly Uint8Array[], length?: number) => {
    most = Math.max(most, list.length);
    return concat(list, length);
  }) as typeof Buffer.concat;
  t.teardown(() => {
    Buffer.concat = concat;
  });
  let held = 0;
  const { port } = server.address() as AddressInfo;
  const result = await new Promise<Downloaded | Error>((done) => {
    download(
      `http://127.0.0.1:${port}/`,
      {
        allowPrivate: true,
        maxBytes: 1_000_000,
        timeoutMs: 60_000,
        ...unboundedDownload,
        hold: (now) => {
          held = Math.max(held, now);
        },
      },
      done,
    );
  });
  t.notOk(result instanceof Error, String(result));
  const file = (result as Downloaded).bytes;
  t.equal(file.length, bytes);
  t.ok(file.every((byte, at) => byte === 0x61 + (at % 26)));
  t.ok(most < 20, `${most} pieces were kept`);
  t.ok(held >= 2 * bytes);
});
