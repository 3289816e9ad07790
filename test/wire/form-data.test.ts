import { test } from 'tap';
import { writeForm } from '../../src/wire/form-data.js';

test('a form is written as browsers write it', async (t) => {
  const { contentType, body } = writeForm(
    [
      { name: 'model', data: 'whisper-1' },
      { name: 'file', filename: 'a "b"\r\n\\é.mp3', contentType: 'audio/mpeg', data: Buffer.from([0, 255]) },
      { name: 'image[]', filename: '', data: 'x' },
      { name: 'x', filename: null, contentType: 'text/plain', data: 'é\n' },
    ],
    'bound',
  );
  t.equal(contentType, 'multipart/form-data; boundary=bound');
  t.equal(
    Buffer.concat(body).toString('latin1'),
    Buffer.from(
      [
        '--bound',
        'Content-Disposition: form-data; name="model"',
        '',
        'whisper-1',
        '--bound',
        'Content-Disposition: form-data; name="file"; filename="a %22b%22%0D%0A\\é.mp3"',
        'Content-Type: audio/mpeg',
        '',
        'BYTES',
        '--bound',
        'Content-Disposition: form-data; name="image[]"; filename=""',
        'Content-Type: application/octet-stream',
        '',
        'x',
        '--bound',
        'Content-Disposition: form-data; name="x"',
        'Content-Type: text/plain',
        '',
        'é\n',
        '--bound--',
        '',
      ].join('\r\n'),
    )
      .toString('latin1')
      .replace('BYTES', '\x00\xff'),
  );
});

test('buffers are not copied, and texts make no pieces of their own', async (t) => {
  const data = Buffer.from('abc');
  const { body } = writeForm([
    { name: 'a', data: 'x' },
    { name: 'b', data: 'y' },
    { name: 'c', filename: 'd', data },
    { name: 'e', data: 'z' },
  ]);
  t.equal(body.length, 3);
  t.equal(body[1], data);
});

test('a boundary is random unless it is given, and quoted where it must be', async (t) => {
  const first = writeForm([]).contentType;
  t.match(first, /^multipart\/form-data; boundary=[\w-]{27,70}$/);
  t.not(writeForm([]).contentType, first);
  t.equal(writeForm([], 'a b').contentType, 'multipart/form-data; boundary="a b"');
  for (const boundary of ['', 'a ', 'a"b', 'a\r\nb', 'x'.repeat(71)]) t.throws(() => writeForm([], boundary));
  t.equal(Buffer.concat(writeForm([], 'b').body).toString(), '--b--\r\n');
});

test('a content type cannot begin another line', async (t) => {
  const { body } = writeForm([{ name: 'a', contentType: 'a/b\r\nx: y', data: '' }], 'b');
  t.ok(Buffer.concat(body).toString().includes('\r\nContent-Type: a/b  x: y\r\n\r\n'));
});
