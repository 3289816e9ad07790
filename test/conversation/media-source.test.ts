import { test } from 'tap';
import {
  decodeDataUrl,
  decodeMediaUrl,
  isHttpUrl,
  registeredType,
  standardBase64,
} from '../../src/conversation/media-source.js';
import { GatewayError } from '../../src/errors.js';

const data = (mediaType: string) => ({ kind: 'data', mediaType, data: 'AA==' });

test('data URLs', async (t) => {
  const cases: [string, string][] = [
    ['data:image/png;base64,AA==', 'image/png'],
    ['DATA:Image/PNG;BASE64,AA==', 'image/png'],
    ['data:image/jpg;base64,AA==', 'image/jpeg'],
    ['data:text/plain;charset=utf-8;base64,AA==', 'text/plain'],
    ['data:;base64,AA==', 'application/octet-stream'],
    [`data:image/png;name=${'x'.repeat(60_000)};base64,AA==`, 'image/png'],
  ];
  for (const [url, mediaType] of cases) t.same(decodeMediaUrl(url, 'x'), data(mediaType), url);
});

test('http URLs are passed on as they are', async (t) => {
  for (const url of ['https://h/i.png', 'HTTP://h/i.png'])
    t.same(decodeMediaUrl(url, 'x'), { kind: 'url', url, mediaType: null });
});

test('anything else is refused by its path', async (t) => {
  const refused = { kind: 'invalid_value', status: 400, param: 'a.b', message: /'a\.b'/ };
  for (const url of [
    '',
    'gs://b/i.png',
    'file:///x',
    'httpx',
    'http:foo',
    'data:',
    'data:image/png;base64',
    'data:,AA',
  ])
    t.throws(() => decodeMediaUrl(url, 'a.b'), { ...refused, name: 'GatewayError' }, url);
  for (const url of ['data:image/png,AA', 'data:image/png;base64,', 'data:image/png;base64x,AA']) {
    t.throws(() => decodeMediaUrl(url, 'a.b'), refused, url);
    t.throws(() => decodeDataUrl(url, 'a.b'), GatewayError, url);
  }
});

test('schemes and media types', async (t) => {
  t.ok(isHttpUrl('Https://x'));
  for (const url of ['ftp://x', 'http:foo', 'https:/x', 'http:', 'https:\\\\x']) t.notOk(isHttpUrl(url), url);
  t.equal(registeredType(' IMAGE/JPG '), 'image/jpeg');
  t.equal(registeredType(''), 'application/octet-stream');
});

test('base64 of both alphabets becomes the standard one with its padding', async (t) => {
  for (let length = 1; length < 9; length++) {
    const bytes = Buffer.alloc(length, Buffer.from([0xfb, 0xff, 0xbf]));
    const standard = bytes.toString('base64');
    for (const text of [standard, bytes.toString('base64url'), standard.replaceAll('=', '')])
      t.equal(standardBase64(text), standard, text);
  }
  t.equal(standardBase64(''), '');
  t.equal(standardBase64('AAAA\nAA==\n'), 'AAAA\nAA==\n');
});
