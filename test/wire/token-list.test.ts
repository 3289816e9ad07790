import { test } from 'tap';
import { editedList } from '../../src/wire/passed-headers.js';

test('words are added once, and those that are dropped are left out', async (t) => {
  const none = new Set<string>();
  t.equal(editedList('', [], none), '');
  t.equal(editedList('', ['a', 'b'], none), 'a,b');
  t.equal(editedList(' a , b,', ['b', 'c'], none), 'a,b,c');
  t.equal(editedList('a,b,A', ['c'], new Set(['a', 'c'])), 'b,A,c', 'what is added stays');
  t.equal(editedList('a', [], new Set(['a'])), '');
});
