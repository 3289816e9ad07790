import { test } from 'tap';
import { marksOf } from '../../src/conversation/stream-rules.js';
import { hasPlainLines, OwnEvents } from '../../src/stream/withheld.js';
import { eventEnd } from '../../src/wire/sse.js';
import { cases, fc } from '../support/seed.js';

const own = (id: string, end = '\n\n') => `data: {"id":"${id}","choices":[{"index":0}]}${end}`;
const spaced = `data: {"choices": [{"index": 0}]}\n\n`;
const named = `event: x\ndata: {"choices":[{"index":0}]}\nid: 1\n\n`;
const strange = [
  `data: {"code":401}\n\n`,
  `data: {"id":"a","choices":null,"code":1}\n\n`,
  ': comment\n\n',
  'data: [DONE]\r\n\r\n',
];

/** Where each strange event of a run begins, as it is found. */
function found(events: readonly string[]): number[] {
  const run = Buffer.from(events.join(''));
  const each = new OwnEvents(marksOf('"choices":[{', '"choices": [{'));
  const places: number[] = [];
  for (let at = each.strangeFrom(run, 0, hasPlainLines(run)); at !== -1; ) {
    places.push(at);
    at = each.strangeFrom(run, at + (events[placeOf(events, at)] as string).length, hasPlainLines(run));
  }
  return places;
}

function placeOf(events: readonly string[], at: number): number {
  let start = 0;
  return events.findIndex((event) => {
    const isIt = start === at;
    start += event.length;
    return isIt;
  });
}

test('an event without the mark is found among any others', (t) => {
  const good = [own('a'), own('bb'), own('c', '\r\n\r\n'), own('d', '\r\r'), spaced, named];
  for (const bad of strange) {
    for (let at = 0; at <= good.length; at++) {
      const events = [...good.slice(0, at), bad, ...good.slice(at), bad];
      const starts = events.flatMap((event, i) =>
        event === bad ? [events.slice(0, i).join('').length] : [],
      );
      t.strictSame(found(events), starts, `${bad} at ${at}`);
    }
  }
  t.strictSame(found([...good, ...good]), []);
  t.end();
});

test('where no mark is known, every event is strange', (t) => {
  t.equal(new OwnEvents([]).strangeFrom(Buffer.from(own('a')), 0, true), 0);
  t.end();
});

test('strange events are those that a plain search finds, whatever stands before and behind them', (t) => {
  const marks = marksOf('"choices":[{', '"choices": [{', '"c', '[4]');
  const part = fc.constantFrom(
    ...[
      'data: ',
      'event: x\n',
      ': c',
      '{"id":"',
      'a',
      'bb',
      '","',
      '"choices":[{',
      '"choices": [{',
      '"choices":[',
    ],
    ...['"choices":[}', '"c', '[4]', '"code":401', '}]}', '\n', '\r'],
  );
  const end = fc.oneof({ arbitrary: fc.constant('\n\n'), weight: 9 }, fc.constantFrom('\r\n\r\n', '\r\r'));
  const usual = fc
    .tuple(fc.constantFrom('', 'a', 'bb', 'c'.repeat(16), 'd'.repeat(20)), fc.constantFrom('', 'event: x\n'))
    .map(([id, name]) => `${name}data: {"id":"${id}","choices":[{"index":0}]}\n\n`);
  const any = fc.tuple(fc.array(part, { maxLength: 6 }), end).map(([parts, last]) => parts.join('') + last);
  const events = fc.array(fc.oneof({ arbitrary: usual, weight: 3 }, any, fc.constantFrom(...strange)), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(events, fc.shuffledSubarray([...marks], { minLength: 1 }), (all, known) => {
      const run = Buffer.from(all.join(''));
      const expected: number[] = [];
      for (let start = 0; start < run.length; start = eventEnd(run, start))
        if (!known.some((mark) => run.subarray(start, eventEnd(run, start)).includes(mark)))
          expected.push(start);
      const each = new OwnEvents(known);
      const places: number[] = [];
      const next = (from: number): number => each.strangeFrom(run, from, hasPlainLines(run));
      for (let at = next(0); at !== -1; at = next(eventEnd(run, at))) places.push(at);
      return places.join() === expected.join();
    }),
    { numRuns: cases(5000) },
  );
  t.end();
});
