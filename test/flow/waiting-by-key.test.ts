import { test } from 'tap';
import { WaitingByKey } from '../../src/flow/waiting-by-key.js';

function waitingOf(...added: string[]): WaitingByKey<string> {
  const waiting = new WaitingByKey<string>();
  for (const item of added) waiting.add(item.slice(0, 1), item);
  return waiting;
}

function taken(waiting: WaitingByKey<string>): string[] {
  const all: string[] = [];
  for (let item = waiting.take(); item !== undefined; item = waiting.take()) all.push(item);
  return all;
}

test('the keys take turns, each in its own order', async (t) => {
  const waiting = waitingOf('a1', 'a2', 'a3', 'b1', 'c1', 'c2');
  t.equal(waiting.size, 6);
  t.equal(waiting.countOf('a'), 3);
  t.strictSame(taken(waiting), ['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  t.equal(waiting.size, 0);
  t.equal(waiting.countOf('a'), 0);
});

test('the newest of the key with the most goes first', async (t) => {
  const waiting = waitingOf('a1', 'b1', 'b2');
  t.equal(waiting.takeLastOfMost(), 'b2');
  t.equal(waiting.size, 2);
  t.equal(waiting.takeLastOfMost(), 'a1');
  t.strictSame(taken(waiting), ['b1']);
  t.equal(waiting.takeLastOfMost(), undefined);
});

test('all are taken at once, and others may wait then', async (t) => {
  const waiting = waitingOf('a1', 'b1', 'a2');
  t.strictSame([...waiting.takeAll()].sort(), ['a1', 'a2', 'b1']);
  t.equal(waiting.size, 0);
  waiting.add('b', 'b2');
  t.strictSame(taken(waiting), ['b2']);
});
