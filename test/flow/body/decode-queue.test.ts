import { test } from 'tap';
import { DecodeQueue } from '../../../src/flow/body/decode-queue.js';

function start() {
  const queue = new DecodeQueue();
  const begun: string[] = [];
  const add = (keyId: string, name: string, isNeeded = true) =>
    queue.add(keyId, () => {
      begun.push(name);
      return isNeeded;
    });
  return { queue, begun, add };
}

test('two decoders are open at once, and one key that sends many waits behind another that sends one', (t) => {
  const { queue, begun, add } = start();
  for (let i = 0; i < 5; i++) add('a', `a${i}`);
  add('b', 'b0');
  t.same(begun, ['a0', 'a1']);
  queue.next();
  queue.next();
  t.same(begun, ['a0', 'a1', 'a2', 'b0']);
  queue.next();
  queue.next();
  queue.next();
  t.same(begun.slice(4), ['a3', 'a4']);
  t.end();
});

test('a body that is not needed any more takes no decoder', (t) => {
  const { queue, begun, add } = start();
  for (let i = 0; i < 2; i++) add('a', 'open');
  for (let i = 0; i < 3; i++) add('a', 'gone', false);
  add('a', 'last');
  queue.next();
  t.same(begun, ['open', 'open', 'gone', 'gone', 'gone', 'last']);
  t.end();
});

test('a body is refused while 1024 of its key wait, and those of other keys are not', (t) => {
  const { queue, begun, add } = start();
  const isTaken = Array.from({ length: 2 + 1024 }, () => add('a', 'a'));
  t.notOk(isTaken.includes(false));
  t.notOk(add('a', 'a'));
  t.ok(add('b', 'b'));
  queue.next();
  queue.next();
  t.same(begun, ['a', 'a', 'a', 'b']);
  t.ok(add('a', 'a'));
  t.end();
});
