import { test } from 'tap';
import { readImageFile } from '../../src/media/image.js';

const jpeg = Buffer.from('ffd8ffe0', 'hex');

test('a file keeps its bytes and its name, and gets its type', async (t) => {
  const file = { data: jpeg, contentType: 'application/octet-stream', filename: 'a.bin' };
  const image = readImageFile(file, 'image');
  t.same(image, { kind: 'bytes', bytes: jpeg, mediaType: 'image/jpeg', filename: 'a.bin', at: 'image' });
  t.equal(image.bytes, jpeg);
});

test('an empty file is refused', async (t) => {
  t.throws(() => readImageFile({ data: Buffer.alloc(0), contentType: 'image/png', filename: 'a' }, 'mask'), {
    status: 400,
    param: 'mask',
    message: /'mask': the file is empty/,
  });
});
