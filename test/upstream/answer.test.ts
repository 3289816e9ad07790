import { test } from 'tap';
import { AnswerReader } from '../../src/upstream/answer.js';

/** Reads an answer in pieces that end at the given offsets, each in a buffer of its own at an odd place. */
function read(answer: string, ends: readonly number[], toHead = false) {
  const reader = new AnswerReader();
  reader.begin(toHead);
  let status = 0;
  let body = '';
  let from = 0;
  for (const end of [...ends, answer.length]) {
    const buffer = Buffer.from(answer.slice(from, end), 'latin1');
    let at = 0;
    if (status === 0) {
      const head = reader.readHead(buffer, buffer.length);
      if (reader.problem !== null) break;
      if (head !== null) {
        status = head.status;
        at = reader.next;
      }
    }
    if (status !== 0) {
      const size = reader.readBody(buffer, at, buffer.length);
      if (size === -1) break;
      body += buffer.toString('latin1', reader.payloadStart, reader.payloadStart + size);
    }
    from = end;
  }
  return { status, body, done: reader.done, leftover: reader.leftover, problem: reader.problem };
}

const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
const cases: [string, string, boolean][] = [
  [`${interim}HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\nhello`, 'hello', true],
  [
    `${interim}HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`,
    'hello',
    true,
  ],
  ['HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello', 'hello', false],
  ['HTTP/1.1 204 No Content\r\nA: b\r\n\r\n', '', true],
];

test('an answer means the same at every pair of split offsets', async (t) => {
  for (const [answer, body, done] of cases) {
    const wrong: number[][] = [];
    for (let first = 0; first <= answer.length; first++) {
      for (let second = first; second <= answer.length; second += 3) {
        const result = read(answer, [first, second]);
        if (result.body !== body || result.done !== done || result.leftover) wrong.push([first, second]);
      }
    }
    t.strictSame(wrong, [], JSON.stringify(answer));
  }
});

test('bytes after the end are noticed at every split', async (t) => {
  for (const [answer, body, done] of cases) {
    if (!done) continue;
    for (let end = 0; end <= answer.length + 1; end++) {
      const result = read(`${answer}x`, [end]);
      t.ok(result.done && result.leftover && result.body === body);
    }
  }
});

test('a malformed line is found without waiting for the end of the head', async (t) => {
  for (const text of ['SSH-2.0-x\r\n', 'HTTP/1.1 200 OK\n', 'HTTP/1.1 200 OK\r\na : b\r\n']) {
    for (let end = 0; end < text.length; end++) t.type(read(text, [end]).problem, 'string', text);
  }
});

test('bytes that begin no head are found out without a line feed, and called so', async (t) => {
  for (const text of ['A'.repeat(40_000), 'HTTP/2 ', '\r', `HTTP/1.1 200 OK\r\n\r\n`.slice(1)])
    t.equal(read(text, []).problem, 'not an HTTP/1 status line');
  for (const text of ['', 'H', 'HTTP/1', 'HTTP/1.']) t.equal(read(text, []).problem, null);
});

test('a head is measured by itself, whatever came before it', async (t) => {
  const early = `HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(12_000)}\r\n\r\n`;
  const last = `HTTP/1.1 200 OK\r\na: ${'x'.repeat(12_000)}\r\ncontent-length: 2\r\n\r\nok`;
  const text = early.repeat(3) + last;
  for (let size = 1; size < 40_000; size = size * 3 + 1) {
    const ends = Array.from({ length: Math.floor(text.length / size) }, (_, index) => (index + 1) * size);
    const { problem, done, body } = read(text, ends);
    t.same({ problem, done, body }, { problem: null, done: true, body: 'ok' }, `in pieces of ${size}`);
  }
});

test('a head that comes byte by byte meets the limit', async (t) => {
  const endless = `HTTP/1.1 200 OK\r\na: ${'x'.repeat(20_000)}`;
  t.equal(
    read(
      endless,
      [...endless].map((_, i) => i),
    ).problem,
    'head too large',
  );
});
