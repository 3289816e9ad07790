import { test } from 'tap';
import { writeForm } from '../../src/wire/form-data.js';
import { readForm } from '../../src/wire/multipart.js';
import { boundaryOf } from '../../src/wire/multipart-type.js';
import { cases, fc } from '../support/seed.js';
import { contents, decode, wide } from './multipart-decoding.js';

/** As long as Node's own reader of forms wants it. */
const boundary = 'XyZ-------------------------XyZ';

/** What a content must not have in it. */
const delimiter = new RegExp(`(^|[\\r\\n])--${boundary}`);

/** What a content could be mistaken for the end of itself by. */
const fragments = ['\r', '\n', '\r\n', '-', '--', '\r\n--', '\r\n--XyZ', `--${boundary}`, `\r\n-${boundary}`];
const content = fc
  .array(fc.oneof(fc.constantFrom(...fragments), fc.uint8Array({ maxLength: 40 })), { maxLength: 12 })
  .map((pieces) => Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))))
  .filter((bytes) => !delimiter.test(bytes.toString('latin1')));

const characters = ['a', 'é', '日', '😀', '"', "'", ' ', ';', '=', '%', '\\', '/', '.', '[', ']'];
const nameOf = (more: readonly string[], minLength: number) =>
  fc
    .array(fc.constantFrom(...characters, ...more), { minLength, maxLength: 12 })
    .map((letters) => letters.join(''))
    // Browsers do not escape what others read as an escape.
    .filter((name) => !/\\\\|\\$/.test(name));
const name = nameOf([], 1);
const filename = nameOf(['\r', '\n'], 1);
const type = fc.constantFrom('audio/mpeg', 'text/plain; charset=utf-8', 'application/octet-stream');

const part = fc.oneof(
  fc.record({ name, filename: fc.constant(null), contentType: fc.constant(null), data: content }),
  fc.record({
    name,
    filename: fc.oneof(filename, fc.constant('')),
    contentType: type,
    data: content,
  }),
);
const parts = fc.array(part, { maxLength: 6 });

test('what was written is read again, at any split', async (t) => {
  fc.assert(
    fc.property(parts, fc.array(fc.nat(4000), { maxLength: 20 }), (written, offsets) => {
      const form = writeForm(written, boundary);
      const body = Buffer.concat(form.body);
      const cuts = offsets.map((offset) => Math.min(offset, body.length)).sort((a, b) => a - b);
      const { error, parts: read, held } = decode({ body, boundary: boundaryOf(form.contentType) }, cuts);
      const expected = written.map(({ data, ...head }) => ({ ...head, data: data.toString('latin1') }));
      const found = read.map(({ start, end, data, ...head }) =>
        body.toString('latin1', start, end) === data ? { ...head, data } : null,
      );
      if (error !== null) throw error;
      return isSame(found, expected) && held <= wide.headerBytes;
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

/** Texts without what the two sides would change: Node strips a byte order mark, and makes line ends CRLF. */
const text = fc
  .array(fc.constantFrom('a', 'é', '-', ' ', '\r\n', '--XyZ'), { maxLength: 8 })
  .map((all) => all.join(''));
const entry = fc.oneof(
  fc.record({ name, value: text }),
  fc.record({ name, filename, type, bytes: fc.uint8Array({ maxLength: 60 }) }),
);

test('what Node writes is read as it was meant, and Node reads what is written here', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 5 }), async (entries) => {
      const form = new FormData();
      for (const each of entries) {
        if ('value' in each) form.append(each.name, each.value);
        else form.append(each.name, new Blob([each.bytes], { type: each.type }), each.filename);
      }
      const response = new Response(form);
      const contentType = response.headers.get('content-type') as string;
      const body = Buffer.from(await response.arrayBuffer());
      const read = readForm(body, boundaryOf(contentType), wide);
      const expected = entries.map((each) =>
        'value' in each
          ? { name: each.name, filename: null, data: Buffer.from(each.value).toString('latin1') }
          : { name: each.name, filename: each.filename, data: Buffer.from(each.bytes).toString('latin1') },
      );
      const found = read.map((each) => ({
        name: each.name,
        filename: each.filename,
        data: each.data.toString('latin1'),
      }));
      const written = writeForm(read, boundary);
      const again = await new Response(Buffer.concat(written.body), {
        headers: { 'content-type': written.contentType },
      }).formData();
      return isSame(found, expected) && isSame(await entriesOf(again), await entriesOf(form));
    }),
    { numRuns: 200 },
  );
  t.pass();
});

async function entriesOf(form: FormData): Promise<(string | null)[][]> {
  return Promise.all(
    [...form].map(async ([key, value]) =>
      typeof value === 'string'
        ? [key, null, null, value]
        : [key, value.name, value.type, Buffer.from(await value.arrayBuffer()).toString('latin1')],
    ),
  );
}

function isSame(found: unknown, expected: unknown): boolean {
  if (JSON.stringify(found) === JSON.stringify(expected)) return true;
  throw new Error(`found ${JSON.stringify(found)}\nexpected ${JSON.stringify(expected)}`);
}

test('a form as the OpenAI SDK writes it', async (t) => {
  const { OpenAI } = await import('openai6');
  let contentType = '';
  let body = Buffer.alloc(0);
  const client = new OpenAI({
    apiKey: 'k',
    maxRetries: 0,
    fetch: async (_, init) => {
      const sent = new Response(init?.body as FormData);
      contentType = sent.headers.get('content-type') as string;
      body = Buffer.from(await sent.arrayBuffer());
      return Response.json({ text: 'x' });
    },
  });
  await client.audio.transcriptions.create({
    file: new File(['abc'], 'naïve "a".mp3', { type: 'audio/mpeg' }),
    model: 'whisper-1',
    temperature: 0.5,
    response_format: 'verbose_json',
    timestamp_granularities: ['word', 'segment'],
  });
  t.strictSame(contents(decode({ body, boundary: boundaryOf(contentType) }, [])), [
    ['file', 'naïve "a".mp3', 'audio/mpeg', 'abc'],
    ['model', null, null, 'whisper-1'],
    ['temperature', null, null, '0.5'],
    ['response_format', null, null, 'verbose_json'],
    ['timestamp_granularities[]', null, null, 'word'],
    ['timestamp_granularities[]', null, null, 'segment'],
  ]);
});
