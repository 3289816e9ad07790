import { test } from 'tap';
import { noParts } from '../../../src/conversation/usage.js';
import { GatewayError } from '../../../src/errors.js';
import { imageEdits, imageGenerations } from '../../../src/protocols/images/index.js';
import { Tail } from '../../../src/wire/tail.js';

const { judgeStart, judgeEnd, usageOf } = imageGenerations;
const run = (text: string) => Buffer.from(text);
const nothing = { usageAtStart: null, ended: false };
const event = (body: { readonly type: string }, named = true) =>
  `${named ? `event: ${body.type}\n` : ''}data: ${JSON.stringify(body)}\n\n`;
const partial = (prefix: string, b64_json = 'AAAA', index = 0) => ({
  type: `${prefix}.partial_image`,
  b64_json,
  created_at: 1,
  size: '1024x1024',
  quality: 'high',
  background: 'opaque',
  output_format: 'png',
  partial_image_index: index,
});
const counted = {
  total_tokens: 100,
  input_tokens: 40,
  output_tokens: 60,
  input_tokens_details: { text_tokens: 10, image_tokens: 30 },
};
const completed = (prefix: string, b64_json = 'AAAA') => ({
  type: `${prefix}.completed`,
  b64_json,
  created_at: 1,
  usage: counted,
});
const usage = {
  input: 40,
  output: 60,
  cached: 0,
  cacheWritten: 0,
  reasoning: 0,
  parts: { ...noParts, imageInput: 30, imageOutput: 60 },
};
const prefixes = ['image_generation', 'image_edit'];
const large = 'A'.repeat(3_000_000);

/** The end of a stream as it is kept. */
function tailOf(stream: string): Buffer {
  const tail = new Tail();
  const bytes = run(stream);
  for (let at = 0; at < bytes.length; at += 65_536) tail.add(bytes.subarray(at, at + 65_536));
  return tail.bytes();
}

test('images are asked for at the paths of their upstreams', async (t) => {
  t.match(imageGenerations, { protocol: 'images', modelInBody: true, translation: null, amender: null });
  t.equal(imageGenerations.upstreamPath('m', false), '/images/generations');
  t.equal(imageEdits.upstreamPath('m', true), '/images/edits');
  t.equal(imageEdits.protocol, 'images');
});

test('an event with an image is meaningful, comments are silence', async (t) => {
  t.equal(judgeStart(run(': ping\n\n')), 'silence');
  t.equal(judgeStart(run('event: keepalive\ndata: {"type":"keepalive"}\n\n')), 'silence');
  for (const prefix of prefixes) {
    for (const named of [true, false]) {
      t.equal(judgeStart(run(event(partial(prefix), named))), 'meaningful');
      t.equal(judgeStart(run(`: ping\n\n${event(completed(prefix), named)}`)), 'meaningful');
      t.equal(judgeStart(run(event(partial(prefix, large), named).slice(0, 1_000_000))), 'meaningful');
    }
  }
  t.equal(judgeStart(run(event(partial('image_edit')).replaceAll('\n', '\r\n'))), 'meaningful');
  t.equal(judgeStart(run('data: {"b64_json":"AAAA","type":"image_edit.completed"}\n\n')), 'meaningful');
  t.equal(judgeStart(run(`data: {"b64_json":"${large}`)), 'meaningful', 'of a large event, its first part');
});

test('a first event that is an error, or of another protocol, is an error', async (t) => {
  const kinds: [string, string, string][] = [
    ['data: {"error":{"message":"slow","code":"rate_limit_exceeded"}}\n\n', 'rate_limit_exceeded', 'slow'],
    ['event: error\ndata: {"error":{"message":"broken"}}\n\n', 'upstream_error', 'broken'],
    ['data: {"type":"error","code":429,"message":"slow"}\n\n', 'rate_limit_exceeded', 'slow'],
    ['data: {"type":"error"}\n\n', 'upstream_error', 'answered with an error'],
    ['data: {"error":"text alone"}\n\n', 'upstream_error', 'text alone'],
    ['data: {"type":"response.created"}\n\n', 'unsupported_stream_event', 'response.created'],
    ['data: {"choices":[]}\n\n', 'unsupported_stream_event', 'without a type'],
    ['data: nothing\n\n', 'unsupported_stream_event', 'not a JSON object'],
  ];
  for (const [text, kind, words] of kinds) {
    const verdict = judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind, text);
    t.match((verdict as GatewayError).message, words);
  }
});

test('a stream is complete with its last image, however large', async (t) => {
  for (const prefix of prefixes) {
    for (const image of ['AAAA', large]) {
      for (const named of [true, false]) {
        for (const behind of ['', 'data: [DONE]\n\n', ': ping\n\n: ping\n\n', event({ type: 'keepalive' })]) {
          const stream =
            event(partial(prefix, image), named) + event(completed(prefix, image), named) + behind;
          t.same(judgeEnd(tailOf(stream), nothing), { state: 'complete', usage, error: null });
        }
      }
    }
  }
  const bare = event({ ...completed('image_edit', large), usage: null } as { type: string });
  t.same(judgeEnd(tailOf(bare), nothing), { state: 'complete', usage: null, error: null });
  t.equal(judgeEnd(tailOf(event(completed('image_edit')).trimEnd()), nothing).state, 'complete');
});

test('a stream that ends before its last image is not', async (t) => {
  const whole = event(partial('image_generation', large)) + event(completed('image_generation', large));
  for (const cut of [1_000_000, whole.length / 2 + 1000, whole.length - 300, whole.length - 20]) {
    t.equal(judgeEnd(tailOf(whole.slice(0, cut)), nothing).state, 'incomplete', `cut at ${cut}`);
  }
  for (const image of ['AAAA', large])
    t.equal(judgeEnd(tailOf(event(partial('image_edit', image, 2))), nothing).state, 'incomplete');
  t.equal(judgeEnd(run(''), nothing).state, 'incomplete');
  t.equal(judgeEnd(run(': ping\n\ndata: [DONE]\n\n'), nothing).state, 'incomplete');
  const two = event(completed('image_edit')) + event(partial('image_edit'));
  t.equal(judgeEnd(tailOf(two), nothing).state, 'incomplete', 'a second image is on its way');
});

test('a stream that ends with an error has failed', async (t) => {
  for (const image of ['AAAA', large]) {
    const stream = `${event(partial('image_generation', image))}data: {"error":{"message":"x"}}\n\n`;
    t.equal(judgeEnd(tailOf(stream), nothing).state, 'failed');
    t.equal(judgeEnd(tailOf(`${stream}data: [DONE]\n\n`), nothing).state, 'failed');
  }
  t.equal(
    judgeEnd(tailOf('event: error\ndata: {"type":"error","message":"x"}\n\n'), nothing).state,
    'failed',
  );
});

test('usage is read from a whole answer', async (t) => {
  t.same(usageOf(run(JSON.stringify({ created: 1, data: [{ b64_json: 'AAAA' }], usage: counted }))), usage);
  t.equal(usageOf(run('{"created":1,"data":[]}')), null);
  t.equal(usageOf(run('{"usage":{"image_count":1}}')), null);
});
