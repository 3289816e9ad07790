import { test } from 'tap';
import type { StreamEvent } from '../../src/conversation/answer.js';
import { Sequence } from '../../src/stream/sequence.js';
import { fc } from '../support/seed.js';

function ordered(events: readonly StreamEvent[]): StreamEvent[] {
  const sequence = new Sequence();
  const out: StreamEvent[] = [];
  for (const event of events) sequence.push(event, out);
  return out;
}

const start = (call: number): StreamEvent => ({
  kind: 'callStart',
  choice: 0,
  call,
  id: `call_${call}`,
  name: `f${call}`,
  custom: false,
});
const args = (call: number, text: string): StreamEvent => ({ kind: 'callArguments', choice: 0, call, text });
const end = (call: number): StreamEvent => ({ kind: 'callEnd', choice: 0, call });
const text = (text: string): StreamEvent => ({ kind: 'text', choice: 0, text });
const finish: StreamEvent = { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null };
const over: StreamEvent = { kind: 'end' };

test('calls that are written at once come one after the other', async (t) => {
  t.strictSame(
    ordered([
      start(0),
      start(1),
      args(1, '{"b"'),
      args(0, '{}'),
      args(1, ':1}'),
      text('t'),
      end(0),
      end(1),
      finish,
      over,
    ]),
    [
      start(0),
      args(0, '{}'),
      end(0),
      start(1),
      args(1, '{"b"'),
      args(1, ':1}'),
      end(1),
      text('t'),
      finish,
      over,
    ],
  );
});

test('a call without arguments gets an empty object', async (t) => {
  t.strictSame(ordered([start(0), args(0, ''), end(0), over]), [start(0), args(0, '{}'), end(0), over]);
});

test('a call that is still open at the end is closed there', async (t) => {
  t.strictSame(ordered([start(0), args(0, '1'), start(1), over]), [
    start(0),
    args(0, '1'),
    end(0),
    start(1),
    args(1, '{}'),
    end(1),
    over,
  ]);
});

test('an error is told at once, and a usage never waits', async (t) => {
  const usage: StreamEvent = {
    kind: 'usage',
    usage: { input: 1, output: 1, cached: 0, cacheWritten: 0, reasoning: 0 },
  };
  t.strictSame(
    ordered([start(0), text('waits'), usage]).map(({ kind }) => kind),
    ['callStart', 'usage'],
  );
});

test('pieces of calls that have ended, or not begun, are dropped wherever they come', async (t) => {
  t.strictSame(
    ordered([start(0), args(1, 'early'), start(1), end(1), args(1, 'late'), end(1), end(0), text('t'), over]),
    [start(0), args(0, '{}'), end(0), start(1), args(1, '{}'), end(1), text('t'), over],
  );
});

test('calls that are all open at once are each looked at once, whichever way they end', async (t) => {
  const count = 60_000;
  const numbers = Array.from({ length: count }, (_, number) => number);
  const starts = numbers.map(start);
  const whole = numbers.flatMap((number) => [start(number), args(number, '{}'), end(number)]);
  const orders = [
    [...starts, ...numbers.map(end), over],
    [...starts, ...numbers.map(end).reverse(), over],
    [...starts, over],
  ];
  for (const events of orders) {
    const out = ordered(events);
    t.equal(out.length, whole.length + 1);
    t.strictSame(out.slice(-4), [...whole.slice(-3), over]);
  }
});

test('what waits is bounded', async (t) => {
  const sequence = new Sequence();
  const out: StreamEvent[] = [];
  sequence.push(start(0), out);
  for (let i = 0; i < 10; i++) sequence.push(text('x'.repeat(1024 * 1024)), out);
  t.equal(out.find(({ kind }) => kind === 'error')?.kind, 'error');
});

test('what waits is bounded whatever it is', async (t) => {
  const long = 'x'.repeat(1024 * 1024);
  const logprobs = Array.from({ length: 20_000 }, () => ({
    token: 'x',
    logprob: 0,
    bytes: null,
    top_logprobs: [],
  }));
  const waiting: StreamEvent[] = [
    { kind: 'signature', choice: 0, signature: long },
    { kind: 'citation', choice: 0, citation: { start: 0, end: 1, url: long, title: '' } },
    { kind: 'citation', choice: 0, citation: { start: 0, end: 1, url: '', title: long } },
    { kind: 'callStart', choice: 0, call: 1, id: long, name: '', custom: false },
    { kind: 'text', choice: 0, text: '', logprobs },
  ];
  for (const event of waiting) {
    const kinds = (count: number) =>
      ordered([start(0), ...Array.from({ length: count }, () => event)]).map(({ kind }) => kind);
    t.strictSame(kinds(6), ['callStart']);
    t.strictSame(kinds(9).slice(0, 2), ['callStart', 'error'], event.kind);
  }
});

test('whatever the order, each call keeps its pieces and nothing is lost', async () => {
  const calls = fc.array(fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 4 }), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(calls, fc.infiniteStream(fc.nat()), (pieces, picks) => {
      const queues = pieces.map((each, call) => [
        start(call),
        ...each.map((piece) => args(call, piece)),
        end(call),
      ]);
      const mixed: StreamEvent[] = [];
      for (let open = queues.filter((each) => each.length > 0); open.length > 0; ) {
        const queue = open[(picks.next().value as number) % open.length] as StreamEvent[];
        mixed.push(queue.shift() as StreamEvent);
        open = queues.filter((each) => each.length > 0);
      }
      const written = new Map<number, string>();
      let current = -1;
      for (const event of ordered([...mixed, over])) {
        if (event.kind === 'callStart') {
          if (current !== -1) return false;
          current = event.call;
          written.set(current, '');
        } else if (event.kind === 'callArguments') {
          if (event.call !== current) return false;
          written.set(current, written.get(current) + event.text);
        } else if (event.kind === 'callEnd') {
          current = -1;
        }
      }
      return pieces.every((each, call) => written.get(call) === (each.join('') || '{}'));
    }),
  );
});
