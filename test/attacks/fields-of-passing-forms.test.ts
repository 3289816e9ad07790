import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { mediaConfig } from '../support/media/gateway.js';
import { open, readAnswer } from '../support/raw-client.js';
import { startRawUpstream } from '../support/upstream.js';
import { heldBytes, heldWhen } from './held-bytes.js';

/* What comes before the file of a form is kept to its end: a megabyte for each form, whose file need never end. */

const mebibyte = 1024 * 1024;
const field = (name: string, value: string): string =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const head =
  `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
  'content-type: multipart/form-data; boundary=b\r\ncontent-length: 100000000\r\n\r\n';
const file = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';

test('the fields of forms in passing count for their key until the form has ended', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { c: { baseUrl: upstream.url } },
      models: { m: { protocols: ['audio'], targets: [{ upstream: 'c' }] } },
      config: {
        limits: { bodyBytes: 2 * mebibyte, bufferedBytes: 64 * mebibyte, bufferedBytesPerKey: 16 * mebibyte },
      },
    }),
  });
  const fields = Array.from({ length: 4 }, (_, i) => field(`p${i}`, 'x'.repeat(200_000))).join('');
  const bytes = head + field('model', 'm') + fields + file + 'y'.repeat(100_000);
  const first = await open(gateway.port, bytes);
  await upstream.arrival(0);
  await heldWhen(gateway, (held) => held >= 800_000);
  t.ok(heldBytes(gateway) < 4 * mebibyte, `${heldBytes(gateway)}`);
  const others = await Promise.all(Array.from({ length: 24 }, () => open(gateway.port, bytes)));
  const refused = await Promise.race(others.map(readAnswer));
  t.equal(refused.status, 503);
  t.match(refused.body, /The calls of your key hold as much memory/);
  t.ok(heldBytes(gateway) <= 16 * mebibyte);
  for (const socket of [first, ...others]) socket.destroy();
  await heldWhen(gateway, (held) => held === 0);
});

test('the names of a hundred parts count, too', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { c: { baseUrl: upstream.url } },
      models: { m: { protocols: ['audio'], targets: [{ upstream: 'c' }] } },
    }),
  });
  const names = Array.from({ length: 100 }, (_, i) => field(`${i}${'n'.repeat(7000)}`, '')).join('');
  const socket = await open(gateway.port, head + field('model', 'm') + names + file + 'y'.repeat(500_000));
  await upstream.arrival(0);
  await heldWhen(gateway, (held) => held >= 700_000);
  t.ok(heldBytes(gateway) < 4 * mebibyte);
  socket.destroy();
  await heldWhen(gateway, (held) => held === 0);
});
