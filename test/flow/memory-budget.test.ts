import { test } from 'tap';
import { MemoryBudget } from '../../src/flow/memory-budget.js';

test('what each key holds is counted apart, and a key that holds nothing leaves nothing behind', (t) => {
  const memory = new MemoryBudget();
  const expected = new Map<string, number>();
  for (let step = 0; step < 2000; step++) {
    const key = `k${(step * 7) % 13}`;
    const before = expected.get(key) ?? 0;
    const change = step % 3 === 2 ? -before : step;
    memory.add(key, change);
    expected.set(key, before + change);
    t.equal(memory.bytesOf(key), before + change) || t.fail(`step ${step}`);
  }
  t.strictSame(
    new Map(memory.list()),
    new Map([...expected].filter(([, held]) => held !== 0)),
    'those that hold anything',
  );
  for (const [key, held] of expected) memory.add(key, -held);
  t.strictSame(memory.list(), []);
  t.end();
});
