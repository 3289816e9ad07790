import zlib, { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { decodeBody, decoderOf } from '../../src/http/content-coding.js';

const spaces = Buffer.alloc(4_000_000, 0x20);

const decoded = (coding: string, body: Buffer, limit: number) =>
  new Promise<Buffer | GatewayError>((done) => decodeBody(decoderOf(coding), body, limit, done));

test('the window of a brotli decoder is told by the first bits of a body', (t) => {
  for (let log = constants.BROTLI_MIN_WINDOW_BITS; log <= constants.BROTLI_MAX_WINDOW_BITS; log++) {
    const params = { [constants.BROTLI_PARAM_QUALITY]: 3, [constants.BROTLI_PARAM_LGWIN]: log };
    const window = decoderOf('br').windowBytes(brotliCompressSync(spaces, { params }));
    t.equal(window, 2 ** log, `2 ** ${log}`);
  }
  t.equal(decoderOf('GZIP').windowBytes(gzipSync(spaces)), 32 * 1024);
  t.end();
});

test('a body is decoded up to its limit', async (t) => {
  const body = gzipSync(spaces);
  t.same(await decoded('gzip', body, spaces.length), spaces);
  const refused = await decoded('gzip', body, spaces.length - 1);
  t.ok(refused instanceof GatewayError && refused.kind === 'request_too_large');
});

test('zstd is refused with a larger window than 8 MiB, and by a Node that cannot decode it', async (t) => {
  if (!('zstdCompressSync' in zlib)) {
    t.throws(() => decoderOf('zstd'), { code: 'unsupported_media_type' });
    return;
  }
  const { zstdCompressSync } = zlib as unknown as {
    zstdCompressSync: (body: Buffer, options: object) => Buffer;
  };
  const { ZSTD_c_windowLog: windowLog } = constants as unknown as Record<string, number>;
  const sized = (log: number) =>
    zstdCompressSync(Buffer.concat(Array.from({ length: 10 }, () => spaces)), {
      params: { [windowLog as number]: log },
    });
  t.equal(decoderOf('zstd').windowBytes(sized(23)), 8 * 1024 * 1024);
  t.ok(Buffer.isBuffer(await decoded('zstd', sized(23), 50_000_000)));
  const refused = await decoded('zstd', sized(25), 50_000_000);
  t.ok(refused instanceof GatewayError && refused.kind === 'invalid_request');
});
