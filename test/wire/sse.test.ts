import { test } from 'tap';
import { EventRuns, eventEnd, firstEventEnd, lastEventEnd, parseEvent } from '../../src/wire/sse.js';
import { fc } from '../support/seed.js';

const lineEnds = ['\n', '\r\n', '\r'];

/** Feeds `text` in pieces that end at `cuts`, and gives back the runs and what was left. */
function feed(text: Buffer, cuts: readonly number[], limit = 1_000_000): { runs: string[]; rest: string } {
  const splitter = new EventRuns(limit);
  const runs: string[] = [];
  let from = 0;
  for (const to of [...cuts, text.length]) {
    // A copy that is spoiled afterwards: a run must not live longer than the chunk it was cut from.
    const chunk = Buffer.from(text.subarray(from, to));
    const run = splitter.push(chunk);
    if (run !== null) runs.push(run.toString('latin1'));
    chunk.fill(0);
    from = to;
  }
  return { runs, rest: splitter.rest()?.toString('latin1') ?? '' };
}

test('events are cut whole at every split offset', async (t) => {
  for (const end of ['\n', '\r\n']) {
    const events = [
      `data: {"a":"é"}${end}${end}`,
      `: comment${end}${end}`,
      `event: x${end}data: 1${end}data: 2${end}${end}`,
    ];
    const text = Buffer.from(`${events.join('')}data: unfinished`);
    const whole = events.join('').length;
    for (let cut = 0; cut <= text.length; cut++) {
      const { runs, rest } = feed(text, [cut]);
      t.equal(Buffer.from(runs.join('') + rest, 'latin1').toString(), text.toString(), `cut ${cut}`);
      for (const run of runs) t.ok(run.endsWith(end + end), `cut ${cut} gives whole events`);
      t.equal(Buffer.from(rest, 'latin1').toString(), 'data: unfinished');
    }
    t.equal(feed(text, [...text.keys()]).runs.length, 3, 'byte by byte, one run an event');
    t.ok(whole > 0);
  }
});

test('any stream in any pieces comes out as it went in, at boundaries only', async (t) => {
  const line = fc.constantFrom('data: {"x":1}', 'event: message', ': ping', 'id: 7', 'data:', 'retry: 10');
  const event = fc.tuple(fc.array(line, { minLength: 1, maxLength: 4 }), fc.constantFrom('\n', '\r\n'));
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 8 }),
      fc.array(fc.nat(400), { maxLength: 20 }),
      (events, offsets) => {
        const text = Buffer.from(
          events.map(([lines, end]) => lines.map((each) => each + end).join('') + end).join(''),
        );
        const cuts = offsets.map((offset) => Math.min(offset, text.length)).sort((a, b) => a - b);
        const { runs, rest } = feed(text, cuts);
        return (
          runs.join('') === text.toString() &&
          rest === '' &&
          runs.every((run) => /(\n\n|\r\n\r\n)$/.test(run))
        );
      },
    ),
  );
  t.pass();
});

test('an unfinished event is held up to the limit and then passed on in parts', async (t) => {
  const long = Buffer.from(`data: ${'x'.repeat(1000)}\n\ndata: next\n\n`);
  const cuts = Array.from({ length: 99 }, (_, index) => (index + 1) * 10);
  const { runs, rest } = feed(long, cuts, 100);
  t.equal(runs.join('') + rest, long.toString());
  t.ok((runs[0]?.length ?? 0) <= 120, 'the first part leaves soon after the limit');
  const splitter = new EventRuns(100);
  splitter.push(Buffer.from(`data: ${'x'.repeat(200)}`));
  t.equal(splitter.overlong, true);
  t.equal(splitter.push(Buffer.from('\n\n'))?.toString(), '\n\n');
  t.equal(splitter.overlong, false);
  t.equal(splitter.held, 0);
});

test('the blank line behind an event that is passed on in parts is seen at every cut, and nothing waits for it', async (t) => {
  const long = `data: ${'x'.repeat(200)}`;
  for (const blank of ['\n\n', '\r\n\r\n', '\r\r', '\n\r\n', '\r\n\n']) {
    for (let cut = 0; cut <= blank.length; cut++) {
      for (let second = cut; second <= blank.length; second++) {
        const splitter = new EventRuns(100);
        const pieces = [long, `y${blank.slice(0, cut)}`, blank.slice(cut, second), blank.slice(second)];
        const runs = pieces.map((piece) => splitter.push(Buffer.from(piece))?.toString() ?? '');
        const name = JSON.stringify(pieces.slice(1));
        t.equal(runs.join(''), `${long}y${blank}`, name);
        t.equal(splitter.overlong, false, name);
        t.equal(splitter.push(Buffer.from('data: next\n')), null, 'what follows is held again');
        t.equal(splitter.push(Buffer.from('\n'))?.toString(), 'data: next\n\n');
      }
    }
  }
});

test('the first and the last boundary are found for every line end', async (t) => {
  for (const end of lineEnds) {
    const one = `data: a${end}${end}`;
    const bytes = Buffer.from(`${one}data: b${end}${end}data: c`);
    t.equal(firstEventEnd(bytes, 0, bytes.length), one.length, JSON.stringify(end));
    t.equal(lastEventEnd(bytes, 0, bytes.length), 2 * one.length, JSON.stringify(end));
    t.equal(eventEnd(bytes, 3), one.length, JSON.stringify(end));
    t.equal(eventEnd(bytes, bytes.length - 1), bytes.length, 'an event that has not ended');
  }
  t.equal(firstEventEnd(Buffer.from('data: a\n'), 0, 8), -1);
  t.equal(lastEventEnd(Buffer.from('data: a\n'), 0, 8), 0);
  t.equal(lastEventEnd(Buffer.from('data: a\r\n'), 0, 9), 0, 'CRLF is one line end');
});

test('an event is parsed as the specification says', async (t) => {
  t.same(parseEvent('event: a\ndata: 1\ndata:2\n\n'), { event: 'a', data: '1\n2' });
  t.same(parseEvent('data:  two spaces\r\n\r\n'), { event: null, data: ' two spaces' });
  t.same(parseEvent('\ufeffdata: after a mark\n\n'), { event: null, data: 'after a mark' });
  t.same(parseEvent(': comment\n\n'), { event: null, data: null });
  t.same(parseEvent('data\n\n'), { event: null, data: '' });
  t.same(parseEvent('id: 1\ndatabase: no\n\n'), { event: null, data: null });
  t.same(parseEvent(''), { event: null, data: null });
});
