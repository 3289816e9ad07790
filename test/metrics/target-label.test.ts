import { test } from 'tap';
import { targetLabel } from '../../src/metrics/gauges.js';

test('no two targets have one name, whatever slashes theirs have', async (t) => {
  t.equal(targetLabel('openai', 'meta/llama'), 'openai/meta/llama');
  t.equal(targetLabel('a/b', 'c'), 'a%2Fb/c');
  t.not(targetLabel('a/b', 'c'), targetLabel('a', 'b/c'));
  t.not(targetLabel('a%2Fb', 'c'), targetLabel('a/b', 'c'));
});
