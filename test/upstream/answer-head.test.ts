import { test } from 'tap';
import { maxFields, ParsedHead, parseHead } from '../../src/upstream/answer.js';
import { initialsOf, maxHeadBytes } from '../../src/wire/head.js';
import { cases, fc } from '../support/seed.js';

const parse = (text: string, toHead = false) => {
  const buffer = Buffer.from(text, 'latin1');
  return parseHead(buffer, 0, buffer.length, toHead);
};

const good = (text: string, toHead = false): ParsedHead => {
  const head = parse(text, toHead);
  if (!(head instanceof ParsedHead)) throw new Error(`refused: ${head}`);
  return head;
};

test('a plain head is read whole', async (t) => {
  const text =
    'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A:  b c\t \r\ncontent-length: 5\r\nempty:\r\n\r\nhello';
  const head = good(text);
  t.equal(head.status, 200);
  t.strictSame(head.fields, ['content-type', 'text/plain', 'x-a', 'b c', 'content-length', '5', 'empty', '']);
  t.equal(head.contentLength, 5);
  t.equal(head.chunked, false);
  t.equal(head.reusable, true);
  t.equal(head.end, text.length - 5);
  t.equal(head.get('x-a'), 'b c');
  t.equal(head.get('nothing'), null);
});

test('a head tells with which letters its names begin, whatever their case, but for those that govern', async (t) => {
  const head = good('HTTP/1.1 200 OK\r\nX-A: b\r\ncontent-type: text/plain\r\n\r\n');
  t.ok(head.mayHave(initialsOf('x')) && head.mayHave(initialsOf('rx')));
  t.notOk(head.mayHave(initialsOf('raoc')));
  t.ok(good('HTTP/1.1 200 OK\r\nCF-RAY: b\r\n\r\n').mayHave(initialsOf('c')));
  t.ok(new ParsedHead().mayHave(initialsOf('r')), 'one that was not read may have all');
});

test('values lose tabs and spaces around them, and nothing else', async (t) => {
  const head = good('HTTP/1.1 200 OK\r\nX-A:\t \xa0b\xa0 \t\r\nX-B::\r\nContent-Encoding: \tGZIP\t\r\n\r\n');
  t.strictSame(head.fields, ['x-a', '\xa0b\xa0', 'x-b', ':', 'content-encoding', 'GZIP']);
  t.equal(head.contentCoding, 'gzip');
});

test('the fields that govern are known in every case, and no others', async (t) => {
  const head = good('HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 5\r\nConnection: Close\r\n\r\n');
  t.equal(head.contentLength, 5);
  t.equal(head.reusable, false);
  const other = good('HTTP/1.1 200 OK\r\ncontent_length: 5\r\nkeep-alivE: timeout=7\r\n\r\n');
  t.equal(other.contentLength, -1);
  t.equal(other.keepAliveSeconds, 7);
});

test('a head inside a larger buffer is read at its place', async (t) => {
  const buffer = Buffer.from('junkHTTP/1.1 204 \r\n\r\nHTTP/1.1 200 OK\r\n\r\n');
  const head = parseHead(buffer, 4, 21, false);
  t.ok(head instanceof ParsedHead && head.end === 21 && head.status === 204);
  t.equal(parseHead(buffer, 4, 20, false), null, 'bytes beyond the end do not count');
});

test('a reason phrase may be missing, empty or odd', async (t) => {
  for (const line of ['200', '200 ', '200 very\tfine \xe9'])
    t.equal(good(`HTTP/1.1 ${line}\r\n\r\n`).status, 200);
});

test('malformed heads are refused', async (t) => {
  const bad = [
    '\r\nHTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.1 200 OK\n\n\r\n\r\n',
    'HTTP/2 200 OK\r\n\r\n',
    'HTTP/1.2 200 OK\r\n\r\n',
    'http/1.1 200 OK\r\n\r\n',
    'HTTP/1.1  200 OK\r\n\r\n',
    'HTTP/1.1 20 OK\r\n\r\n',
    'HTTP/1.1 2000 OK\r\n\r\n',
    'HTTP/1.1 099 OK\r\n\r\n',
    'HTTP/1.1 200OK\r\n\r\n',
    'HTTP/1.1 200 O\0K\r\n\r\n',
    'HTTP/1.1 200 OK\r\r\n\r\n',
    'HTTP/1.1 200 OK\r\na : b\r\n\r\n',
    'HTTP/1.1 200 OK\r\na b: c\r\n\r\n',
    'HTTP/1.1 200 OK\r\n: c\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\xe9: c\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n',
    'HTTP/1.1 200 OK\r\n a: b\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\x7f\r\n\r\n',
    'HTTP/1.1 200 OK\r\na: b\r\n\rx\r\n\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
  ];
  for (const text of bad) t.type(parse(text), 'string', JSON.stringify(text));
});

test('framing that could be read in two ways is refused', async (t) => {
  const bad = [
    'content-length: 5\r\ncontent-length: 6',
    'content-length: 5\r\ncontent-length: 5',
    'content-length: 5, 5',
    'content-length: 5,6',
    'content-length:',
    'content-length: 5\t',
    'transfer-encoding: chunked \t ',
    'content-length: +5',
    'content-length: -5',
    'content-length: 0x5',
    'content-length: 5 5',
    'content-length: 5.0',
    'content-length: 9007199254740992',
    'content-length: 99999999999999999999999999',
    'transfer-encoding: chunked\r\ncontent-length: 5',
    'content-length: 5\r\ntransfer-encoding: chunked',
    'transfer-encoding: chunked\r\ntransfer-encoding: chunked',
    'transfer-encoding: gzip, chunked',
    'transfer-encoding: chunked, chunked',
    'transfer-encoding: xchunked',
    'transfer-encoding: identity',
    'transfer-encoding:',
  ];
  for (const fields of bad) {
    t.type(parse(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`), 'string', fields);
    t.type(parse(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`, true), 'string', `${fields} (to a HEAD)`);
  }
  t.type(parse('HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'), 'string');
});

test('the framing follows RFC 9112 section 6.3', async (t) => {
  const cases: [string, boolean, number, boolean, boolean][] = [
    // fields and status, to a HEAD, content length, chunked, reusable
    ['HTTP/1.1 200 OK\r\ncontent-length: 7', true, 0, false, true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked', true, 0, false, true],
    ['HTTP/1.1 200 OK', true, 0, false, true],
    ['HTTP/1.1 204 No Content', false, 0, false, true],
    ['HTTP/1.1 304 Not Modified\r\ncontent-length: 7', false, 0, false, true],
    ['HTTP/1.1 100 Continue', false, 0, false, true],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED', false, -1, true, true],
    ['HTTP/1.1 200 OK\r\ncontent-length: 0', false, 0, false, true],
    ['HTTP/1.1 200 OK\r\ncontent-length: 9007199254740991', false, 9007199254740991, false, true],
    ['HTTP/1.1 200 OK', false, -1, false, false],
    ['HTTP/1.0 200 OK\r\ncontent-length: 3', false, 3, false, false],
    ['HTTP/1.0 200 OK\r\ncontent-length: 3\r\nconnection: keep-alive', false, 3, false, false],
    ['HTTP/1.1 200 OK\r\ncontent-length: 3\r\nConnection: Close', false, 3, false, false],
    ['HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: foo , close', false, 3, false, false],
    ['HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: closed', false, 3, false, true],
  ];
  for (const [text, toHead, length, chunked, reusable] of cases) {
    const head = good(`${text}\r\n\r\n`, toHead);
    t.strictSame([head.contentLength, head.chunked, head.reusable], [length, chunked, reusable], text);
  }
});

test('keep-alive and content-encoding are noted', async (t) => {
  t.equal(good('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\n\r\n').keepAliveSeconds, 5);
  t.equal(good('HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=7\r\n\r\n').keepAliveSeconds, 7);
  t.equal(good('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=x\r\n\r\n').keepAliveSeconds, -1);
  t.equal(good('HTTP/1.1 200 OK\r\n\r\n').keepAliveSeconds, -1);
  t.equal(good('HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\n\r\n').contentCoding, 'gzip');
  t.equal(good('HTTP/1.1 200 OK\r\n\r\n').contentCoding, null);
  t.equal(
    good('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-encoding: br\r\n\r\n').contentCoding,
    '',
  );
});

test('the limits on bytes and fields hold', async (t) => {
  const fields = (count: number) => 'a: b\r\n'.repeat(count);
  t.equal(good(`HTTP/1.1 200 OK\r\n${fields(maxFields)}\r\n`).fields.length, 2 * maxFields);
  t.type(parse(`HTTP/1.1 200 OK\r\n${fields(maxFields + 1)}\r\n`), 'string');
  const frame = 'HTTP/1.1 200 OK\r\na: \r\n\r\n'.length;
  const padded = (size: number) => `HTTP/1.1 200 OK\r\na: ${'x'.repeat(size - frame)}\r\n\r\n`;
  t.equal(good(padded(maxHeadBytes)).end, maxHeadBytes);
  t.type(parse(padded(maxHeadBytes + 1)), 'string');
  t.type(parse('x'.repeat(maxHeadBytes)), 'string', 'no end in sight');
});

test('every shorter range of a good head is incomplete, never refused', async (t) => {
  const buffer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: a\r\nX:\r\nContent-Length: 12\r\n\r\n');
  for (let end = 0; end < buffer.length; end++) t.equal(parseHead(buffer, 0, end, false), null);
  t.ok(parseHead(buffer, 0, buffer.length, false) instanceof ParsedHead);
});

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
const value = fc.stringMatching(/^([!-~\xa0-\xff]([ \t!-~\xa0-\xff]{0,30}[!-~\xa0-\xff])?)?$/);

test('what is written as a head is read back', async () => {
  const special = new Set([
    'connection',
    'keep-alive',
    'content-length',
    'content-encoding',
    'transfer-encoding',
  ]);
  const field = fc.tuple(token, value, fc.constantFrom('', ' ', '\t ', '  '));
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.array(field, { maxLength: 12 }), (status, fields) => {
      const plain = fields.filter(([name]) => !special.has(name.toLowerCase()));
      const lines = plain.map(([name, text, gap]) => `${name}:${gap}${text}${gap}\r\n`).join('');
      const head = good(`HTTP/1.1 ${status} x\r\n${lines}\r\n`);
      const expected = plain.flatMap(([name, text]) => [name.toLowerCase(), text]);
      return head.status === status && JSON.stringify(head.fields) === JSON.stringify(expected);
    }),
    { numRuns: cases(300) },
  );
});

test('no bytes at all make it throw or read past the end', async (t) => {
  const alphabet = fc.constantFrom(
    ...'HTP/1. 20\r\n:a,\0\xff-',
    'HTTP/1.1 200 OK\r\n',
    '\r\n\r\n',
    'a: b\r\n',
  );
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 30 }), (parts) => {
      const text = parts.join('');
      const head = parse(text);
      return head === null || typeof head === 'string' || head.end <= text.length;
    }),
    { numRuns: cases(1000) },
  );
  t.pass();
});
