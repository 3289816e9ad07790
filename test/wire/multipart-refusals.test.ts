import { test } from 'tap';
import { MultipartDecoder, type MultipartLimits } from '../../src/wire/multipart.js';
import { decode, wide } from './multipart-decoding.js';

interface Refused {
  readonly what: string;
  readonly body: string;
  readonly message: string;
  readonly limits?: Partial<MultipartLimits>;
  readonly status?: number;
  readonly param?: string;
}

const part = (head: string, content = 'x') => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const named = (name: string, content?: string) =>
  part(`Content-Disposition: form-data; name="${name}"`, content);
const file = (name: string, content: string) =>
  part(`Content-Disposition: form-data; name="${name}"; filename="f"`, content);
const whole = (...parts: readonly string[]) => `${parts.join('')}--b--\r\n`;
const disposed = (parameters: string) => whole(part(`Content-Disposition: form-data${parameters}`));

const refused: readonly Refused[] = [
  { what: 'nothing', body: '', message: "The form ends before its first boundary, '--b'." },
  { what: 'no boundary', body: 'abc', message: "does not begin with its boundary, '--b'" },
  { what: 'a line end and nothing', body: '\r\n', message: 'before its first boundary' },
  { what: 'two line ends at the start', body: `\r\n\r\n${whole(named('a'))}`, message: 'does not begin' },
  { what: 'LF at the start', body: `\n${whole(named('a'))}`, message: 'does not begin' },
  { what: 'CR at the start', body: `\r${whole(named('a'))}`, message: 'does not begin' },
  { what: 'a preamble', body: `x\r\n${whole(named('a'))}`, message: 'does not begin' },
  { what: 'a boundary in a preamble', body: `x${named('a')}${whole(named('a'))}`, message: 'does not begin' },
  {
    what: 'another boundary',
    body: `--c${'x'.repeat(1100)}`,
    message: "does not begin with its boundary, '--b'",
  },
  { what: 'no last boundary', body: named('a'), message: "The form ends before its last boundary, '--b--'." },
  { what: 'the end in a head', body: '--b\r\ncontent-dis', message: 'before its last boundary' },
  { what: 'the end in a boundary', body: `${named('a')}--b-`, message: 'before its last boundary' },
  { what: 'a content cut short', body: named('a').slice(0, -2), message: 'before its last boundary' },
  {
    what: 'a long epilogue',
    body: `${whole(named('a'))}${' '.repeat(1100)}`,
    message: 'goes on behind its last boundary',
  },
  {
    what: 'a part behind the end',
    body: `${whole(named('a'))}\r\n${whole(named('b'))}`,
    message: 'goes on behind its last boundary',
  },
  ...['\n', '\r', 'x\n', 'x\r', '\r\r', '\r\n\n', '\n\r', '--b\n', '\r\n--\r', '\r\n-\n'].map((before) => ({
    what: `a boundary in a content behind ${JSON.stringify(before)}`,
    body: whole(named('x'), named('a', `y${before}${named('b')}`)),
    message: "The field 'a' of the form has the form's boundary in it, behind a CR or LF alone",
    param: 'a',
  })),
  ...['\n', '\r', '\n\r'].map((before) => ({
    what: `a content that begins with ${JSON.stringify(before)} and the boundary`,
    body: whole(file('a', `${before}--b--`)),
    message: "The file 'a' of the form has the form's boundary in it, behind a CR or LF alone",
    param: 'a',
  })),
  ...["name*=utf-8''model", 'name*0="mo"; name*1="del"', 'filename*0="x"', "filename*0*=utf-8''x"].map(
    (parameter) => ({
      what: `a name in pieces, or coded: ${parameter}`,
      body: disposed(`; name="a"; ${parameter}`),
      message: `has a parameter '${parameter.slice(0, parameter.indexOf('='))}' in its content-disposition`,
    }),
  ),
  {
    what: 'a boundary that goes on',
    body: '--bc\r\n',
    message: "begins with its boundary, '--b', and goes on",
  },
  { what: 'one dash', body: '--b-x', message: 'and goes on' },
  { what: 'a last boundary that goes on', body: '--b--x', message: 'and goes on' },
  { what: 'CR without LF behind a boundary', body: '--b\rx', message: 'and goes on' },
  { what: 'endless padding', body: `--b${' '.repeat(1100)}`, message: 'and goes on' },
  {
    what: 'LF behind a boundary',
    body: '--b\ncontent-disposition: form-data; name=a\n\n',
    message: 'LF alone',
  },
  { what: 'LF in a head', body: '--b\r\nContent-Disposition: form-data; name=a\n\nx', message: 'LF alone' },
  { what: 'a line that is LF alone', body: '--b\r\n\n', message: 'LF alone' },
  {
    what: 'a content that is the boundary',
    body: named('a', '--b'),
    message: 'begins with the form',
    param: 'a',
  },
  { what: 'no head', body: whole('--b\r\n\r\nx\r\n'), message: 'Part 1 of the form has no valid head' },
  { what: 'no disposition', body: whole(part('Content-Type: text/plain')), message: 'has no valid head' },
  {
    what: 'another disposition',
    body: whole(part('Content-Disposition: attachment; name="a"')),
    message: 'form-data; name',
  },
  { what: 'a disposition that goes on', body: disposed('x; name="a"'), message: 'has no valid head' },
  { what: 'no name', body: disposed('; filename="a"'), message: 'Part 1 of the form has no name.' },
  { what: 'an empty name', body: disposed('; name=""'), message: 'has no name' },
  { what: 'an open quote', body: disposed('; name="a'), message: 'has no valid head' },
  { what: 'a name in angle brackets', body: disposed('; name=<a>'), message: 'has no valid head' },
  {
    what: 'a quote inside a value without quotes',
    body: disposed('; a=x"; name=other; b="; name=a; c="'),
    message: 'has no valid head',
  },
  { what: 'text behind a quote', body: disposed('; name="a"b'), message: 'has no valid head' },
  { what: 'two names', body: disposed('; name="a"; name="b"'), message: "has more than one 'name'" },
  {
    what: 'two filenames',
    body: disposed('; name="a"; filename="b"; filename="c"'),
    message: "more than one 'filename'",
  },
  {
    what: 'two dispositions',
    body: disposed('; name="a"\r\nContent-Disposition: form-data; name="b"'),
    message: "has more than one 'content-disposition' in its head",
  },
  { what: 'a line without a colon', body: disposed('; name="a"\r\nabc'), message: "no 'name: value'" },
  { what: 'a line without a name', body: disposed('; name="a"\r\n: x'), message: "no 'name: value'" },
  { what: 'a space before the colon', body: disposed('; name="a"\r\nx : y'), message: "no 'name: value'" },
  { what: 'a folded line', body: disposed(';\r\n name="a"'), message: 'continues the one before' },
  { what: 'CR in a line', body: disposed('; name="a\rb"'), message: "no 'name: value'" },
  { what: 'a nul in a name', body: disposed('; name="a\0b"'), message: 'control character in its head' },
  {
    what: 'a delete in a filename',
    body: disposed('; name="a"; filename="\x7f"'),
    message: 'control character',
  },
  { what: 'a line end in a name', body: disposed('; name="a%0D%0Ab"'), message: 'in its name' },
  {
    what: 'a nul in a coded filename',
    body: disposed(`; name="a"; filename*=UTF-8''%00`),
    message: 'in its filename',
  },
  {
    what: 'a filename in another charset',
    body: disposed(`; name="a"; filename*=big5''x`),
    message: "malformed 'filename*'",
  },
  {
    what: 'a filename in broken UTF-8',
    body: disposed(`; name="a"; filename*=UTF-8''%ff`),
    message: "malformed 'filename*'",
  },
  {
    what: 'base64',
    body: disposed('; name="a"\r\nContent-Transfer-Encoding: base64'),
    message: 'has a content-transfer-encoding',
  },
  { what: 'the second part', body: whole(named('a'), named('')), message: 'Part 2 of the form has no name' },
  {
    what: 'too many parts',
    body: whole(named('a'), named('b'), named('c')),
    message: 'more than 2 parts',
    limits: { parts: 2 },
  },
  {
    what: 'a long head',
    body: whole(named('a'.repeat(100))),
    message: 'The head of part 1 of the form is longer than 100 bytes.',
    limits: { headerBytes: 100 },
  },
  {
    what: 'a long field',
    body: whole(named('prompt', 'x'.repeat(11))),
    message: "The field 'prompt' of the form is larger than 10 bytes.",
    limits: { fieldBytes: 10 },
    param: 'prompt',
  },
  {
    what: 'a large file',
    body: whole(file('file', 'x'.repeat(11))),
    message: "The file 'file' of the form is larger than 10 bytes.",
    limits: { fileBytes: 10 },
    status: 413,
    param: 'file',
  },
];

for (const { what, body: text, message, limits, status = 400, param = null } of refused) {
  test(`refused the same at every split: ${what}`, async (t) => {
    const body = Buffer.from(text);
    const given = { body, boundary: 'b', limits: { ...wide, ...limits } };
    const told = decode(given, []);
    t.equal(told.error?.status, status);
    t.equal(told.error?.param, param);
    t.ok(told.error?.message.includes(message), `${told.error?.message}`);
    const expected = JSON.stringify([told.error?.message, told.parts]);
    const splits: readonly number[][] = [...Array.from(body.keys(), (cut) => [cut]), [...body.keys()]];
    for (const cuts of splits) {
      const { error, parts } = decode(given, cuts);
      if (JSON.stringify([error?.message, parts]) !== expected) t.fail(`cut at ${cuts.join()}`);
    }
  });
}

test('a name that is not UTF-8 is refused, a filename is not', async (t) => {
  const body = (parameters: string) => Buffer.from(disposed(parameters), 'latin1');
  t.match(decode({ body: body('; name="\xe9"'), boundary: 'b' }, []).error, {
    message: /not UTF-8, in its name/,
  });
  t.equal(
    decode({ body: body('; name="a"; filename="\xe9"'), boundary: 'b' }, []).parts[0]?.filename,
    '\ufffd',
  );
});

test('what is just within the limits is taken', async (t) => {
  const text = whole(named('a', 'x'.repeat(10)), file('b', 'y'.repeat(20)));
  const limits = {
    parts: 2,
    headerBytes: Buffer.byteLength('Content-Disposition: form-data; name="b"; filename="f"\r\n\r\n'),
    fieldBytes: 10,
    fileBytes: 20,
  };
  const given = { body: Buffer.from(`\r\n${text}${' \t\r\n'.repeat(255)}\r\n`), boundary: 'b', limits };
  t.strictSame(decode(given, []).error, null);
  t.strictSame(decode(given, [...given.body.keys()]).error, null);
  for (const name of ['parts', 'headerBytes', 'fieldBytes', 'fileBytes'] as const) {
    const error = decode({ ...given, limits: { ...limits, [name]: limits[name] - 1 } }, []).error;
    t.ok(error, name);
  }
});

test('an error of the receiver ends the form', async (t) => {
  let calls = 0;
  const decoder = new MultipartDecoder('b', wide, {
    onPart() {
      calls++;
      throw new Error('no more');
    },
    onPartData: () => calls++,
    onPartEnd: () => calls++,
  });
  t.throws(() => decoder.push(Buffer.from(whole(named('a')))), { message: 'no more' });
  t.throws(() => decoder.push(Buffer.from('x')), { message: 'no more' });
  t.throws(() => decoder.end(), { message: 'no more' });
  t.equal(calls, 1);
});

test('a boundary that is none is a mistake of the caller', async (t) => {
  t.throws(() => new MultipartDecoder('', wide, { onPart() {}, onPartData() {}, onPartEnd() {} }));
});
