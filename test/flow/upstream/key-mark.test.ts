import { test } from 'tap';
import { keyMark } from '../../../src/flow/upstream/key-mark.js';

test('a key has one mark, however many others there are', (t) => {
  const mark = keyMark('a key');
  t.match(mark, /^[0-9a-f]{16}$/);
  const marks = new Set([mark]);
  for (let number = 0; number < 3000; number++) marks.add(keyMark(`key ${number}`));
  t.equal(marks.size, 3001);
  t.equal(keyMark('a key'), mark);
  t.equal(keyMark(null), null);
  t.end();
});
