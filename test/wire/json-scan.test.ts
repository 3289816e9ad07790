import assert from 'node:assert/strict';
import { test } from 'tap';
import { type Span, scanBody } from '../../src/wire/json-scan.js';
import { refusalOf } from '../support/refusal.js';
import { cases, fc } from '../support/seed.js';
import { anyJson, anyText, noise, writeJson } from './json-text.js';

const scan = (text: string) => scanBody(Buffer.from(text));
/** As JSON keeps it: no undefined, no other prototype. */
const clone = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));
const textOf = (text: string, span: Span | null) =>
  span === null ? null : Buffer.from(text).toString('utf8', span.start, span.end);

test('the values of the watched keys are found with their exact bounds', (t) => {
  const text =
    ' { "a" : [ "model" , {"model":1} ] , "model" : "m\\"x" , "stream"\n:\ttrue ,"stream_options":{ "include_usage" : false } } ';
  const found = scan(text);
  t.equal(found.open, 2);
  t.equal(textOf(text, found.model), '"m\\"x"');
  t.equal(textOf(text, found.streamOptions), '{ "include_usage" : false }');
  t.equal(textOf(text, found.includeUsage), 'false');
  t.end();
});

test('a key inside another object or inside a string is not a top-level key', (t) => {
  const found = scan('{"a":{"model":1,"stream":2},"b":"\\",\\"model\\":1,","c":"model"}');
  t.match(found, { model: null, streamOptions: null, includeUsage: null });
  t.end();
});

test('include_usage is only read where stream_options is an object', (t) => {
  t.equal(scan('{"include_usage":true,"stream_options":null}').includeUsage, null);
  t.equal(scan('{"stream_options":["include_usage"]}').includeUsage, null);
  t.equal(scan('{"stream_options":{"x":{"include_usage":true}}}').includeUsage, null);
  t.end();
});

test('a key spelled with escapes is the same key', (t) => {
  const text = '{"\\u006dodel":"m","stream\\u005foptions":{"include\\u005Fusage":true}}';
  const found = scan(text);
  t.equal(textOf(text, found.model), '"m"');
  t.equal(textOf(text, found.includeUsage), 'true');
  t.end();
});

test('a repeated key is refused, also when spelled with escapes', (t) => {
  const bodies: [string, string][] = [
    ['{"model":"a","model":"b"}', 'model'],
    ['{"model":"a","\\u006dodel":"b"}', 'model'],
    ['{"\\u006D\\u006F\\u0064\\u0065\\u006C":"a","x":1,"model":"b"}', 'model'],
    ['{"stream":true,"model":"a","stream":false}', 'stream'],
    ['{"stream_options":{},"stream_options":null}', 'stream_options'],
    ['{"stream_options":{"include_usage":true,"include_us\\u0061ge":false}}', 'stream_options.include_usage'],
  ];
  for (const [body, param] of bodies) {
    const error = refusalOf(() => scan(body));
    t.match(error, { kind: 'invalid_request_body', status: 400, param }, body);
    t.match(error?.message, `'${param}' twice`);
  }
  t.doesNotThrow(() => scan('{"temperature":1,"temperature":2}'), "other keys are the upstream's business");
  t.doesNotThrow(() => scan('{"model":"a","messages":[{"model":1,"stream":1}],"x":{"model":2}}'));
  t.end();
});

test('nesting is bounded, and the bound is named', (t) => {
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  t.doesNotThrow(() => scan(nested(64)));
  const error = refusalOf(() => scan(nested(65)));
  t.match(error, { kind: 'invalid_request', status: 400 });
  t.match(error?.message, '64 levels');
  t.match(refusalOf(() => scan(`{"a":${'['.repeat(1e6)}`))?.message, '64 levels');
  t.doesNotThrow(() => scan(`{"a":"${'['.repeat(100)}"}`));
  t.end();
});

test('what is not one JSON object is refused with the reason', (t) => {
  const bodies: [Buffer | string, string, string][] = [
    ['', 'invalid_json', 'is empty'],
    [' \r\n', 'invalid_json', 'is empty'],
    ['\ufeff{"model":"m"}', 'invalid_json', 'byte order mark'],
    [Buffer.from('\ufeff{}', 'utf16le'), 'invalid_json', 'byte 0xff'],
    ['[{"model":"m"}]', 'invalid_request', 'found an array'],
    ['"text"', 'invalid_request', 'found a single value'],
    ['null', 'invalid_request', 'found a single value'],
    ['model=m&stream=true', 'invalid_json', 'at byte 0'],
    ['[1,', 'invalid_json', 'at byte 3'],
    ['{"model":"m"} {"model":"n"}', 'invalid_json', 'at byte 14'],
    ['{"model":"m"}}', 'invalid_json', 'at byte 13'],
    ['{"model":"m"}\0', 'invalid_json', 'byte 0x00'],
  ];
  for (const [body, kind, message] of bodies) {
    const error = refusalOf(() => scanBody(Buffer.from(body)));
    t.equal(error?.kind, kind, message);
    t.match(error?.message, message);
  }
  t.end();
});

test('a string ends at the same quote wherever escapes fall', (t) => {
  for (let backslashes = 0; backslashes < 6; backslashes++) {
    for (let before = 0; before < 40; before++) {
      for (const after of [0, 1, 300]) {
        const value = `${'a'.repeat(before)}${'\\'.repeat(backslashes)}"${'b'.repeat(after)}`;
        const text = `{"x":${JSON.stringify(value)},"model":1}`;
        if (textOf(text, scan(text).model) !== '1') t.fail(`${before} ${backslashes} ${after}`);
      }
    }
  }
  t.end();
});

test('cuts hold the insides of long string values, and neither keys nor the model', (t) => {
  const long = 'x'.repeat(257);
  const text = JSON.stringify({
    model: long,
    [`k${long}`]: 1,
    a: long,
    b: 'x'.repeat(256),
    c: [long, { [long]: long }],
  });
  const { cuts, cutBytes } = scan(text);
  t.equal(cuts.length, 6);
  t.equal(cutBytes, 3 * 257);
  for (let i = 0; i < cuts.length; i += 2) t.equal(text.slice(cuts[i], cuts[i + 1]), long);
  t.end();
});

test('on any JSON object the spans are the values that JSON.parse finds', (t) => {
  const body = fc.tuple(
    fc.dictionary(anyText, anyJson, { maxKeys: 3 }),
    fc.record(
      {
        model: fc.oneof(anyText, anyJson),
        stream: anyJson,
        stream_options: fc.oneof(
          anyJson,
          fc.record({ x: anyJson, include_usage: anyJson }, { requiredKeys: [] }),
        ),
      },
      { requiredKeys: [] },
    ),
    fc.boolean(),
  );
  fc.assert(
    fc.property(body, noise, ([others, known, knownFirst], next) => {
      const value: Record<string, unknown> = knownFirst ? { ...known, ...others } : { ...others, ...known };
      const text = writeJson(value, next);
      const found = scan(text);
      const options = value.stream_options as Record<string, unknown> | undefined;
      const isObject = typeof options === 'object' && options !== null && !Array.isArray(options);
      const expected: [Span | null, unknown][] = [
        [found.model, value.model],
        [found.streamOptions, value.stream_options],
        [found.includeUsage, isObject ? options.include_usage : undefined],
      ];
      for (const [span, part] of expected) {
        const piece = textOf(text, span);
        assert.equal(piece, piece === null ? null : piece.trim());
        assert.deepEqual(piece === null ? undefined : JSON.parse(piece), clone(part));
      }
    }),
    { numRuns: cases(1500) },
  );
  t.pass();
  t.end();
});
