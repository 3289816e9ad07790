import { test } from 'tap';
import { declaredImageType, imageExtension, imageType } from '../../src/media/image.js';

const heads: readonly (readonly [string, string])[] = [
  ['image/png', '89504e470d0a1a0a0000'],
  ['image/jpeg', 'ffd8ffe000104a464946'],
  ['image/jpeg', 'ffd8ffdb'],
  ['image/webp', '524946461a000000574542505650'],
  ['image/gif', '474946383961'],
  ['image/gif', '4749463837610000'],
];

test('images are known by their first bytes', async (t) => {
  for (const [type, head] of heads) t.equal(imageType(Buffer.from(head, 'hex')), type, head);
});

test('other bytes, and beginnings that are cut, are not', async (t) => {
  for (const head of ['', '00', '89504e47', 'ffd8', '524946461a00000057415645', '47494638', '3c737667'])
    t.equal(imageType(Buffer.from(head, 'hex')), null, head);
});

test('a declared type counts when it names an image, else the bytes do', async (t) => {
  const png = Buffer.from('89504e470d0a1a0a', 'hex');
  const other = Buffer.from('abc');
  const cases: [string | null, Buffer, string][] = [
    ['image/webp', png, 'image/webp'],
    ['Image/JPG; q=1', other, 'image/jpeg'],
    ['image/heic', other, 'image/heic'],
    [null, png, 'image/png'],
    ['', png, 'image/png'],
    ['application/octet-stream', png, 'image/png'],
    ['text/plain', other, 'text/plain'],
    [null, other, 'application/octet-stream'],
    ['image/png\r\nx: y', other, 'application/octet-stream'],
    ['image/', png, 'image/png'],
  ];
  for (const [declared, bytes, type] of cases)
    t.equal(declaredImageType(declared, bytes), type, `${declared}`);
});

test('file endings', async (t) => {
  t.equal(imageExtension('image/jpeg'), 'jpg');
  t.equal(imageExtension('image/png'), 'png');
  t.equal(imageExtension('application/octet-stream'), 'bin');
  t.equal(imageExtension('constructor'), 'bin');
});
