import { test } from 'tap';
import { createCollector } from '../../src/supervisor/operate.js';

test('every process is asked, and what each says comes together', async (t) => {
  const collector = createCollector<string, number>(() => ['a', 'b', 'c']);
  const collected = collector.collect();
  const again = collector.collect();
  collector.onPart('b', 1, 2);
  collector.onPart('a', 1, 1);
  collector.onPart('a', 1, 7);
  collector.onPart('x', 1, 8);
  collector.onPart('a', 2, 10);
  collector.onGone('c');
  t.strictSame(await collected, [2, 1]);
  collector.onGone('b');
  t.strictSame(await again, [10]);
  collector.onPart('b', 1, 9);
});

test('where there is nobody the answer is empty', async (t) => {
  t.strictSame(await createCollector<string, number>(() => []).collect(), []);
});

test('a process that does not answer holds nobody up for long', async (t) => {
  const collector = createCollector<string, number>(() => ['a', 'b']);
  const collected = collector.collect();
  collector.onPart('a', 1, 1);
  t.strictSame(await collected, [1]);
});
