import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { MultipartDecoder, readForm } from '../../src/wire/multipart.js';
import { boundaryOf, isMultipart } from '../../src/wire/multipart-type.js';
import { contents, decode, wide } from './multipart-decoding.js';
import { formSamples } from './multipart-samples.js';

for (const { client, contentType, body, parts } of formSamples) {
  test(`read as it was meant, at every split: ${client}`, async (t) => {
    const given = { body, boundary: boundaryOf(contentType) };
    const whole = decode(given, []);
    t.strictSame(contents(whole), parts);
    for (const { start, end, data } of whole.parts) {
      t.equal(body.toString('latin1', start, end), data, 'the offsets are those of the content');
    }
    for (let cut = 1; cut < body.length; cut++) {
      const { parts: cutParts } = decode(given, [cut]);
      if (JSON.stringify(cutParts) !== JSON.stringify(whole.parts))
        t.strictSame(cutParts, whole.parts, `${cut}`);
    }
    t.strictSame(decode(given, [...body.keys()]).parts, whole.parts, 'byte by byte');
    t.strictSame(
      readForm(body, given.boundary, wide).map(({ data, ...head }) => ({
        ...head,
        data: data.toString('latin1'),
      })),
      whole.parts.map(({ start: _, end: __, ...part }) => part),
    );
  });
}

test('the content of a part is made of views into the chunks, and nothing of it is held', async (t) => {
  const chunk = Buffer.from('abc\r\n-def');
  const seen: Buffer[] = [];
  const decoder = new MultipartDecoder('b', wide, {
    onPart() {},
    onPartData: (bytes) => seen.push(bytes),
    onPartEnd() {},
  });
  decoder.push(Buffer.from('--b\r\ncontent-disposition: form-data; name=a; filename=b\r\n\r\n'));
  const held = decoder.held;
  decoder.push(chunk);
  t.equal(seen.length, 1);
  t.equal(seen[0]?.buffer, chunk.buffer);
  for (let i = 0; i < 1000; i++) decoder.push(chunk);
  t.equal(decoder.held, held);
});

test('a begin of the boundary that another chunk does not go on with is content', async (t) => {
  for (const begin of [
    '\r',
    '\r\n',
    '\r\n-',
    '\r\n--',
    '\r\n--bo',
    '\r\n--bound',
    '\r\r\n--boun',
    '\r\n\r\n--b',
  ]) {
    for (const after of ['x', '\r', '\r\n', '-', begin]) {
      const content = `${begin}${after}`;
      const head = '--boundary\r\ncontent-disposition: form-data; name="a"\r\n\r\n';
      const body = Buffer.from(`${head}${content}\r\n--boundary--`);
      for (const cuts of [[], [head.length + begin.length], [...body.keys()]]) {
        const { parts, error } = decode({ body, boundary: 'boundary' }, cuts);
        t.equal(error, null);
        t.equal(parts[0]?.data, content, JSON.stringify(content));
      }
    }
  }
});

test('the content type tells whether it is a form, and its boundary', async (t) => {
  t.ok(isMultipart('multipart/form-data; boundary=x'));
  t.ok(isMultipart(' Multipart/Form-Data'));
  for (const other of ['', 'application/json', 'multipart/form-data2', 'multipart/mixed; boundary=x'])
    t.notOk(isMultipart(other), other);
  for (const [contentType, boundary] of [
    ['multipart/form-data; boundary=x', 'x'],
    ['multipart/form-data;boundary="x y"; charset=utf-8', 'x y'],
    ['multipart/form-data ; charset="a;b=\\"c" ; BOUNDARY = x ;', 'x'],
    [`multipart/form-data; boundary=${'x'.repeat(70)}`, 'x'.repeat(70)],
  ] as const) {
    t.equal(boundaryOf(contentType), boundary, contentType);
  }
});

test('another content type, or a boundary that is none, is refused', async (t) => {
  const refused: readonly (readonly [string, number, string])[] = [
    ['application/json', 415, "found 'application/json'"],
    ['', 415, 'found none'],
    ['multipart/mixed; boundary=x', 415, "expected the content type 'multipart/form-data'"],
    ['multipart/form-data', 400, 'has no boundary'],
    ['multipart/form-data; charset=utf-8', 400, 'has no boundary'],
    ['multipart/form-data; boundary=', 400, 'a boundary that is none'],
    ['multipart/form-data; boundary="x "', 400, 'a boundary that is none'],
    ['multipart/form-data; boundary="x@y"', 400, 'a boundary that is none'],
    ['multipart/form-data; boundary=é', 400, 'a boundary that is none'],
    [`multipart/form-data; boundary=${'x'.repeat(71)}`, 400, '1 to 70'],
    ['multipart/form-data; boundary=x; boundary=y', 400, 'two boundaries'],
    ['multipart/form-data; boundary="x', 400, 'malformed'],
    ['multipart/form-data; boundary="x"y', 400, 'malformed'],
    ['multipart/form-data; boundary', 400, 'malformed'],
    ['multipart/form-data; =x', 400, 'malformed'],
  ];
  for (const [contentType, status, message] of refused) {
    try {
      boundaryOf(contentType);
      t.fail(contentType);
    } catch (error) {
      t.ok(error instanceof GatewayError && error.status === status, contentType);
      t.ok((error as Error).message.includes(message), (error as Error).message);
    }
  }
});
