import { test } from 'tap';
import {
  headerLine,
  headText,
  joinLines,
  KeptHead,
  LinePair,
  linesWhere,
  NumberedHead,
  nextRequestNumber,
  noLines,
  requestIdOf,
  requestLine,
  requestSeries,
} from '../../src/wire/head.js';

test('an id is its series and the eight hex digits of its number', async (t) => {
  for (const number of [0, 1, 255, 256, 65_535, 65_536, 0x1234_5678, 0xffff_ffff, 3])
    t.equal(requestIdOf('req_a', number), `req_a${number.toString(16).padStart(8, '0')}`);
});

test('numbers follow each other, and the series is of this process', async (t) => {
  const first = nextRequestNumber();
  t.equal(nextRequestNumber(), first + 1);
  t.match(requestSeries, /^req_[0-9a-f]{18}$/);
});

const before = joinLines(requestLine('POST', '/v1/x?a=b'), headerLine('host', 'a.example'));
const after = headerLine('user-agent', 'tab\tand ~');

test('a head that is kept is written as the same lines joined anew, whatever its number and its length', (t) => {
  for (const rest of [after, noLines]) {
    const kept = new KeptHead(before, rest);
    for (const number of [0, 9, 0xabc, 0x9abcdef0, 0xffffffff]) {
      const head = new NumberedHead(kept, number);
      const text = joinLines(before, headerLine('x-request-id', requestIdOf(requestSeries, number)), rest);
      t.equal(head.text, text);
      t.equal(headText(head), text);
      for (const length of [0, 1, 9, 10, 99, 100, 1023, 16_384, 9_999_999, 1_000_000_000]) {
        const whole = `${text}content-length: ${length}\r\n\r\n`;
        t.equal(head.textWith(length), whole);
        t.equal(head.sizeWith(length), whole.length);
        const room = Buffer.alloc(whole.length + 20, '.');
        t.equal(head.writeTo(room, 7, length), 7 + whole.length);
        t.equal(room.toString('latin1'), `${'.'.repeat(7)}${whole}${'.'.repeat(13)}`);
      }
    }
  }
  t.equal(headText(before), before);
  t.end();
});

test('lines are chosen by their names', async (t) => {
  const [one, two] = [headerLine('a', 'b: c'), headerLine('d', '')];
  const lines = joinLines(one, two, one);
  t.equal(
    linesWhere(lines, () => true),
    lines,
  );
  t.equal(
    linesWhere(lines, (name) => name !== 'd'),
    joinLines(one, one),
  );
  t.equal(
    linesWhere(lines, (name) => name === 'd'),
    two,
  );
  t.equal(
    linesWhere(noLines, () => true),
    noLines,
  );
});

test('a pair of lines is joined as any lines are, whatever was joined before', async (t) => {
  const pair = new LinePair();
  const lines = [noLines, headerLine('a', '1'), headerLine('a', '2'), headerLine('b', '1')];
  for (const first of lines)
    for (const second of lines)
      for (let time = 0; time < 2; time++) t.equal(pair.join(first, second), first + second);
});
