import { test } from 'tap';
import { elementsOf } from '../../src/wire/json-scan.js';
import { fc } from '../support/seed.js';

test('the elements of an array are its own texts', (t) => {
  t.same(elementsOf(Buffer.from(' [ 1.0 , "a,]" ,{"b" : [1,2]},[] ] ')), [
    '1.0',
    '"a,]"',
    '{"b" : [1,2]}',
    '[]',
  ]);
  t.same(elementsOf(Buffer.from('[ ]')), []);
  for (const text of ['', '{}', '"[]"', '[', '[1', '[1,]', '[1] 2', '[] 2', '[1 2]', '[,]', 'null'])
    t.equal(elementsOf(Buffer.from(text)), null, text);
  t.end();
});

test('each parses to what the whole array has in its place', (t) => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom('', '\n  '), (list, space) => {
      const elements = elementsOf(Buffer.from(JSON.stringify(list, null, space)));
      return (
        JSON.stringify(elements?.map((each) => JSON.parse(each) as unknown)) ===
        JSON.stringify(JSON.parse(JSON.stringify(list)))
      );
    }),
  );
  t.end();
});
