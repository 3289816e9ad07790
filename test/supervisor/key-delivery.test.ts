import { test } from 'tap';
import { createKeyDelivery } from '../../src/supervisor/managed-keys.js';

/** A delivery to these processes, and the number of what was told last. */
function make(...children: string[]) {
  const delivery = createKeyDelivery<string>();
  let last = 0;
  const tell = (to: readonly string[] = children): number => {
    delivery.tell((number) => {
      last = number;
      return to;
    });
    return last;
  };
  return { ...delivery, tell };
}

test('it is settled when every process has answered what it was told last', async (t) => {
  const { tell, onApplied, settled } = make('a', 'b');
  t.strictSame(await settled(), []);
  const first = tell();
  const second = tell();
  let isSettled = false;
  const waited = settled().then((behind) => {
    isSettled = true;
    return behind;
  });
  onApplied('a', second);
  onApplied('b', first);
  await settledTurn();
  t.equal(isSettled, false);
  onApplied('b', second);
  t.strictSame(await waited, []);
  t.strictSame(await settled(), []);
});

test('what is told later is not waited for', async (t) => {
  const { tell, onApplied, settled } = make('a', 'b');
  const first = tell();
  const waited = settled();
  tell();
  onApplied('a', first);
  onApplied('b', first);
  t.strictSame(await waited, []);
});

test('a process that is gone is not waited for, and one that was told alone is', async (t) => {
  const { tell, onApplied, onGone, settled } = make('a', 'b');
  const number = tell();
  const waited = settled();
  onApplied('a', number);
  onGone('b');
  t.strictSame(await waited, []);
  const alone = tell(['c']);
  const again = settled();
  onApplied('a', alone);
  onApplied('c', alone);
  t.strictSame(await again, []);
});

test('processes that do not answer are named, and hold nobody up for long', async (t) => {
  const { tell, onApplied, settled } = make('a', 'b', 'c');
  const number = tell();
  onApplied('b', number);
  t.strictSame(await settled(), ['a', 'c']);
  onApplied('a', number);
  t.strictSame(await settled(), ['c']);
  onApplied('c', number);
  t.strictSame(await settled(), []);
});

function settledTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
