import { test } from 'tap';
import type { GatewayError } from '../../src/errors.js';
import type { ImageBytes } from '../../src/media/image.js';
import { base64OfDataUrl, readImageText } from '../../src/media/image-text.js';
import { fc } from '../support/seed.js';

const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex');
const at = 'input.messages[0].content[1].image';

function bytesOf(text: string): ImageBytes {
  const image = readImageText(text, at);
  if (image.kind !== 'bytes') throw new Error(`a ${image.kind}`);
  return image;
}

/** Base64 in any of the forms in which it is written. */
const written = fc
  .record({
    bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
    urlSafe: fc.boolean(),
    padded: fc.boolean(),
    lineLength: fc.option(fc.integer({ min: 1, max: 76 }), { nil: null }),
    lineEnd: fc.constantFrom('\n', '\r\n'),
  })
  .map(({ bytes, urlSafe, padded, lineLength, lineEnd }) => {
    const coded = Buffer.from(bytes).toString(urlSafe ? 'base64url' : 'base64');
    const whole = padded ? coded.padEnd(Math.ceil(coded.length / 4) * 4, '=') : coded.replace(/=+$/, '');
    const lines = lineLength === null ? [whole] : (whole.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? []);
    return { bytes: Buffer.from(bytes), text: lines.join(lineEnd) };
  });

/** The image as a `data:` URL (RFC 2397). */
const dataUrl = (image: Pick<ImageBytes, 'bytes' | 'mediaType'>): string =>
  `data:${image.mediaType};base64,${image.bytes.toString('base64')}`;

test('base64 alone and in data URLs gives the bytes, however it is written', async () => {
  fc.assert(
    fc.property(written, fc.constantFrom('', 'data:image/png;base64,'), ({ bytes, text }, head) =>
      bytesOf(head + text).bytes.equals(bytes),
    ),
  );
});

test('base64 with a character that is not of it is refused', async () => {
  const stray = fc.constantFrom('!', '=', '.', '\\', '\u0141', '\u{1f600}', '\0', '%', ':');
  fc.assert(
    fc.property(
      fc.base64String({ minLength: 8, maxLength: 200 }),
      stray,
      fc.nat(),
      (text, character, seed) => {
        const place = seed % (text.replace(/=+$/, '').length - 1);
        try {
          readImageText(text.slice(0, place) + character + text.slice(place), at);
          return false;
        } catch (error) {
          return (error as GatewayError).status === 400 && (error as GatewayError).param === at;
        }
      },
    ),
  );
});

test('any text gives an image or a 400 with its path', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.webUrl(),
    fc.string().map((rest) => `data:${rest}`),
    fc.string().map((rest) => `http://${rest}`),
  );
  fc.assert(
    fc.property(text, (given) => {
      try {
        const image = readImageText(given, at);
        return image.at === at && (image.kind === 'url' ? URL.canParse(image.url) : image.bytes.length > 0);
      } catch (error) {
        return (error as GatewayError).status === 400 && (error as GatewayError).param === at;
      }
    }),
  );
});

test('what was read is written again as a data URL and as base64', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (given) => {
      const image = { bytes: Buffer.from(given), mediaType: 'image/webp' };
      const again = bytesOf(dataUrl(image));
      return (
        again.bytes.equals(image.bytes) &&
        again.mediaType === 'image/webp' &&
        again.bytes.toString('base64') === base64OfDataUrl(dataUrl(image))
      );
    }),
  );
});

test('URLs stay where they are', async (t) => {
  for (const url of ['https://h/i.png', 'HTTP://h/i.png', 'https://h/i.png?a=b,c&d=data:'])
    t.same(readImageText(` ${url}\n`, at), { kind: 'url', url, at });
});

test('the media type is that of the data URL, or what the bytes tell', async (t) => {
  const base64 = png.toString('base64');
  const types: [string, string][] = [
    [base64, 'image/png'],
    [`data:image/webp;base64,${base64}`, 'image/webp'],
    [`DATA:Image/JPG;charset=x;BASE64,${base64}`, 'image/jpeg'],
    [`data:;base64,${base64}`, 'image/png'],
    [`data:application/octet-stream;base64,${base64}`, 'image/png'],
    [`data:text/plain;base64,${base64}`, 'image/png'],
    [`data:image/pn"g;base64,${base64}`, 'image/png'],
    ['data:image/svg+xml;base64,PHN2Zz4=', 'image/svg+xml'],
    ['aGVsbG8=', 'application/octet-stream'],
    ['data:;base64,aGVsbG8=', 'application/octet-stream'],
  ];
  for (const [text, type] of types) t.equal(bytesOf(text).mediaType, type, text);
  t.match(bytesOf(base64), { kind: 'bytes', filename: null, at });
});

test('what is no image is refused, and the message says why', async (t) => {
  const refused: [string, string][] = [
    ['', 'it is empty'],
    [' \n', 'it is empty'],
    ['http://', 'the URL is not valid'],
    ['https://a b/', 'the URL is not valid'],
    ['ftp://h/i.png', 'it is neither'],
    ['file:///etc/passwd', 'it is neither'],
    ['oss://bucket/i.png', 'it is neither'],
    ['cat.png', 'it is neither'],
    ['a black cat', 'it is neither'],
    ['AAAAA', 'it is neither'],
    ['AA===', 'it is neither'],
    ['=', 'it is neither'],
    ['data:image/png;base64', 'has no data'],
    ['data:image/png,AAAA', 'is not in base64'],
    ['data:image/png;base64,', 'is not valid'],
    ['data:image/png;base64,AA%3D%3D', 'is not valid'],
    ['data:text/html;base64,PGI+', 'holds no image'],
  ];
  for (const [text, words] of refused) {
    t.throws(
      () => readImageText(text, at),
      { name: 'GatewayError', status: 400, kind: 'invalid_value', param: at, message: words },
      text,
    );
  }
});

test('base64 of a data URL, and of nothing else', async (t) => {
  t.equal(base64OfDataUrl('data:image/png;base64,AA=='), 'AA==');
  t.equal(base64OfDataUrl('data:image/png,AA=='), null);
  t.equal(base64OfDataUrl('https://h/a;base64,AA=='), null);
  t.equal(base64OfDataUrl('AA=='), null);
});

test('an image of megabytes is read and written whole', async (t) => {
  const bytes = Buffer.alloc(12_000_001, 7);
  const text = `data:image/png;base64,${bytes.toString('base64')}`;
  const image = bytesOf(text);
  t.ok(image.bytes.equals(bytes));
  t.equal(dataUrl(image), text);
});
