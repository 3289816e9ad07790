import assert from 'node:assert/strict';
import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { scanBody } from '../../src/wire/json-scan.js';
import { parseBody, parseWhole } from '../../src/wire/skeleton.js';
import { refusalOf } from '../support/refusal.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, anyText, noise, parsed, writeJson } from './json-text.js';

const skeletonOf = (body: Buffer) => parseBody(body, scanBody(body));

/** Fails unless `skeleton` is `full` with some long strings cut to a head and three dots. */
function assertSkeleton(skeleton: unknown, full: unknown): void {
  if (typeof full === 'string' && typeof skeleton === 'string' && skeleton !== full) {
    // More than 256 bytes are at least 43 characters, should all be escapes of six bytes.
    assert.ok(full.length >= 43);
    assert.ok(skeleton.endsWith('...') && skeleton.length <= 19 && full.startsWith(skeleton.slice(0, -3)));
  } else if (Array.isArray(full)) {
    assert.ok(Array.isArray(skeleton) && skeleton.length === full.length);
    for (const [index, item] of full.entries()) assertSkeleton(skeleton[index], item);
  } else if (typeof full === 'object' && full !== null) {
    assert.ok(typeof skeleton === 'object' && skeleton !== null);
    assert.deepEqual(Object.keys(skeleton), Object.keys(full));
    for (const [key, item] of Object.entries(full))
      assertSkeleton(Object.getOwnPropertyDescriptor(skeleton, key)?.value, item);
  } else {
    assert.deepEqual(skeleton, full);
  }
}

/** True when the byte at `at` is within a string value that the skeleton cuts. */
function isInLongString(body: Buffer, at: number): boolean {
  const { cuts } = scanBody(body);
  return cuts.some((start, index) => index % 2 === 0 && at >= start && at < (cuts[index + 1] ?? 0));
}

const anyBody = fc
  .tuple(fc.dictionary(anyText, anyJson, { maxKeys: 5 }), noise)
  .map(([value, next]) => writeJson(value, next));

test('a long string keeps a head that no constant equals, and the model stays whole', (t) => {
  const long = `data:${'x'.repeat(300)}`;
  const body = Buffer.from(
    JSON.stringify({ model: long, a: long, b: `auto\n${long}`, c: `漢${long}`, d: `\\${long}` }),
  );
  t.same(skeletonOf(body), { model: long, a: 'data:xxxxxxxxxxx...', b: 'auto...', c: '...', d: '...' });
  t.end();
});

test('keys that begin alike stay apart however long they are', (t) => {
  const key = 'k'.repeat(1000);
  const value = { [`${key}1`]: 1, [`${key}2`]: 'two', x: 'long '.repeat(100) };
  const skeleton = skeletonOf(Buffer.from(JSON.stringify(value))) as Record<string, unknown>;
  t.same(Object.keys(skeleton), Object.keys(value));
  t.equal(skeleton[`${key}1`], 1);
  t.end();
});

test('large skeletons are parsed like small ones, one after the other', (t) => {
  for (const items of [1, 3000, 40_000, 2]) {
    const value = {
      long: 'x'.repeat(5000),
      list: Array.from({ length: items }, (_, index) => `${index} `.repeat(6)),
    };
    t.same((skeletonOf(Buffer.from(JSON.stringify(value))) as typeof value).list, value.list);
  }
  t.end();
});

test('a fault outside long strings is reported with its place in the body as sent', (t) => {
  const long = 'x'.repeat(10_000);
  const text = `{"model":"m","a":"${long}","b":tru}`;
  const error = refusalOf(() => skeletonOf(Buffer.from(text)));
  t.equal(error?.kind, 'invalid_json');
  t.match(error?.message, `at byte ${text.length - 1} `);
  t.match(refusalOf(() => parseWhole(Buffer.from(text)))?.message, error?.message);
  t.end();
});

test('faults inside a long string are left to the upstream, and seen by a whole parse', (t) => {
  for (const fault of ['\\x', '\n', '\\u12']) {
    const body = Buffer.from(`{"a":"${'x'.repeat(300)}${fault}"}`);
    t.doesNotThrow(() => skeletonOf(body));
    t.equal(refusalOf(() => parseWhole(body))?.kind, 'invalid_json');
  }
  t.end();
});

test('on any JSON object the skeleton has the structure and the types of the whole', (t) => {
  fc.assert(
    fc.property(anyBody, (text) => {
      const body = Buffer.from(text);
      assertSkeleton(skeletonOf(body), JSON.parse(text));
    }),
    { numRuns: cases(1500) },
  );
  t.pass();
  t.end();
});

test('a body damaged outside its long strings gets the verdict of a whole parse', (t) => {
  const damage = fc.tuple(
    fc.nat(),
    fc.oneof(fc.constantFrom(...Buffer.from('"\\{}[],: 0e')), fc.nat(255)),
    fc.constantFrom('replace', 'insert', 'delete'),
  );
  fc.assert(
    fc.property(anyBody, damage, (text, [place, byte, how]) => {
      const sound = Buffer.from(text);
      const at = place % sound.length;
      if (isInLongString(sound, at)) return;
      const body = Buffer.concat([
        sound.subarray(0, at),
        Buffer.from(how === 'delete' ? [] : [byte]),
        sound.subarray(how === 'insert' ? at : at + 1),
      ]);
      const whole = parsed(body);
      try {
        // An inserted byte can make a string a long one.
        if (isInLongString(body, at)) return;
        const skeleton = skeletonOf(body);
        assert.notEqual(whole, undefined);
        assertSkeleton(skeleton, whole);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (error.kind === 'invalid_json') assert.equal(whole, undefined);
      }
    }),
    { numRuns: cases(4000) },
  );
  t.pass();
  t.end();
});

test('a body cut at any byte is refused', (t) => {
  const text = JSON.stringify({
    model: 'm',
    messages: [{ role: 'user', content: `${'say "hi" \\ '.repeat(40)}` }],
  });
  for (let length = 0; length < text.length; length++) {
    const error = refusalOf(() => skeletonOf(Buffer.from(text.slice(0, length))));
    if (error?.kind !== 'invalid_json') t.fail(`${length}: ${error?.message}`);
  }
  t.end();
});
