import assert from 'node:assert/strict';
import { test } from 'tap';
import { scanBody } from '../../src/wire/json-scan.js';
import { type BodyEdits, spliceBody } from '../../src/wire/splice.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, anyText, noise, writeJson } from './json-text.js';

function spliced(text: string, edits: Partial<BodyEdits>): string {
  const body = Buffer.from(text);
  return Buffer.concat(
    spliceBody(body, scanBody(body), { model: null, includeUsage: false, ...edits }),
  ).toString();
}

test('only the bytes of the model value change', (t) => {
  const text =
    '{ "temperature":1.0,\n"model" : "\\u0061lias" , "seed":12345678901234567890,"x":"\\u00e9" }\n';
  t.equal(spliced(text, { model: 'gpt "x"' }), text.replace('"\\u0061lias"', '"gpt \\"x\\""'));
  t.end();
});

test('the usage option is added, completed or corrected', (t) => {
  const cases: [string, string][] = [
    ['{}', '{"stream_options":{"include_usage":true}}'],
    ['{ }', '{"stream_options":{"include_usage":true} }'],
    ['{ "a":1}', '{"stream_options":{"include_usage":true}, "a":1}'],
    ['{"stream_options" : null}', '{"stream_options" : {"include_usage":true}}'],
    ['{"stream_options":{}}', '{"stream_options":{"include_usage":true}}'],
    ['{"stream_options":{ "x":1 }}', '{"stream_options":{"include_usage":true, "x":1 }}'],
    ['{"stream_options":{"include_usage": false }}', '{"stream_options":{"include_usage": true }}'],
    ['{"stream_options":{"include_usage":null,"x":2}}', '{"stream_options":{"include_usage":true,"x":2}}'],
  ];
  for (const [before, after] of cases) t.equal(spliced(before, { includeUsage: true }), after);
  t.end();
});

test('nothing to change gives the body itself', (t) => {
  const body = Buffer.from('{"model":"m","stream_options":{"include_usage":true}}');
  const scan = scanBody(body);
  t.equal(spliceBody(body, scan, { model: null, includeUsage: true })[0], body);
  t.equal(spliceBody(body, scan, { model: null, includeUsage: false })[0], body);
  t.end();
});

test('a model becomes the first member of a body that names none', (t) => {
  t.equal(spliced('{ "a":1}', { model: 'm' }), '{"model":"m", "a":1}');
  t.equal(spliced('{ }', { model: 'm' }), '{"model":"m" }');
  t.equal(
    spliced('{}', { model: 'm', includeUsage: true }),
    '{"model":"m","stream_options":{"include_usage":true}}',
  );
  t.equal(
    spliced('{"stream_options":{},"a":1}', { model: 'm', includeUsage: true }),
    '{"model":"m","stream_options":{"include_usage":true},"a":1}',
  );
  t.end();
});

test('both edits work together in either order of the keys', (t) => {
  t.equal(
    spliced('{"model":"a","stream_options":{}}', { model: 'b', includeUsage: true }),
    '{"model":"b","stream_options":{"include_usage":true}}',
  );
  t.equal(
    spliced('{"stream_options":null,"model":"a"}', { model: 'b', includeUsage: true }),
    '{"stream_options":{"include_usage":true},"model":"b"}',
  );
  t.equal(
    spliced('{"model":"a"}', { model: 'b', includeUsage: true }),
    '{"stream_options":{"include_usage":true},"model":"b"}',
  );
  t.end();
});

test('on any body the result is the edited value, made of uncopied slices of the original', (t) => {
  const options = fc.oneof(
    fc.constant(null),
    fc.record({ x: anyJson, include_usage: fc.constantFrom(true, false, null) }, { requiredKeys: [] }),
  );
  const anyBody = fc
    .tuple(
      fc.dictionary(anyText, anyJson, { maxKeys: 3 }),
      fc.record({ model: anyText, stream_options: options }, { requiredKeys: ['model'] }),
      fc.boolean(),
    )
    .map(
      ([others, known, first]): Record<string, unknown> =>
        first ? { ...known, ...others } : { ...others, ...known },
    );
  fc.assert(
    fc.property(anyBody, noise, fc.option(anyText), fc.boolean(), (value, next, model, includeUsage) => {
      // Memory of its own, so that a slice of it can be told from new text.
      const body = Buffer.from(new TextEncoder().encode(writeJson(value, next)).buffer);
      const scan = scanBody(body);
      const pieces = spliceBody(body, scan, { model, includeUsage });
      const edited = { ...value };
      if (model !== null) edited.model = model;
      if (includeUsage)
        edited.stream_options = { ...(value.stream_options as object | null), include_usage: true };
      assert.deepEqual(JSON.parse(Buffer.concat(pieces).toString()), JSON.parse(JSON.stringify(edited)));
      let at = 0;
      for (const piece of pieces) {
        assert.ok(piece.length > 0);
        if (piece.buffer !== body.buffer) continue;
        const start = piece.byteOffset;
        const spans = [scan.model, scan.streamOptions, scan.includeUsage];
        assert.ok(at === start || spans.some((span) => span?.start === at && span.end === start));
        at = start + piece.length;
      }
      assert.equal(at, body.length);
    }),
    { numRuns: cases(1500) },
  );
  t.pass();
  t.end();
});
