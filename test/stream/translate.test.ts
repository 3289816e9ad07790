import { test } from 'tap';
import { ownSecrets } from '../../src/config/snapshot.js';
import type { AnswerContext, StreamDecoder, StreamEncoder, TextCodec } from '../../src/conversation/codec.js';
import type { Keep } from '../../src/conversation/kept-turns.js';
import { reportedMetering, wholeAnswers } from '../../src/conversation/stream-rules.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { GatewayError } from '../../src/errors.js';
import { ArrayTransform } from '../../src/stream/array.js';
import { TranslatedTransform } from '../../src/stream/translate.js';
import { EventRuns } from '../../src/wire/sse.js';
import { anything } from '../conversation/fit/rules.js';
import { plainSource } from '../conversation/plain.js';
import { fc } from '../support/seed.js';

const usage = { input: 1, output: 1, cached: 0, cacheWritten: 0, reasoning: 0 };

/** A protocol of one word an event. */
function decoder(): StreamDecoder {
  let over = false;
  return {
    textMember: 'text',
    decode: (_event, data, out) => {
      if (data === 'begin') out.push({ kind: 'start', usage });
      else if (data === 'stop') {
        over = true;
        out.push({ kind: 'end' });
      } else if (data === 'count') out.push({ kind: 'usage', usage: { ...usage, output: 2 } });
      else if (data === 'fail') out.push({ kind: 'error', error: new GatewayError('overloaded', 'full') });
      else out.push({ kind: 'text', choice: 0, text: data });
    },
    finish: (out) => {
      if (!over) out.push({ kind: 'error', error: new GatewayError('upstream_error', 'cut') });
    },
  };
}

const encoder = (): StreamEncoder => ({
  error: null,
  takesRawText: () => false,
  encodeRawText: () => null,
  rawTextFrame: () => null,
  encode: (event) =>
    event.kind === 'text'
      ? `<${event.text}>`
      : event.kind === 'error'
        ? `!${event.error.message}!`
        : `<${event.kind}>`,
});

const codec: TextCodec = {
  rules: anything,
  decodeRequest: () => {
    throw new Error('not needed');
  },
  encodeRequest: () => '',
  usageOf: () => null,
  decodeAnswer: () => {
    throw new GatewayError('upstream_error', 'no answer');
  },
  encodeAnswer: () => '',
  createDecoder: decoder,
  createEncoder: encoder,
};

const transform = (keep: Keep | null = null) =>
  new TranslatedTransform({
    upstreamCodec: codec,
    source: { ...plainSource, model: 'm' },
    clientCodec: codec,
    context: {} as AnswerContext,
    restorer: null,
    inputEstimate: 0,
    tokens: unknownTokens,
    keep,
    secrets: ownSecrets([], []),
  });

const event = (word: string): Buffer => Buffer.from(`data: ${word}\n\n`);

test('what was judged is passed once', async (t) => {
  const each = transform();
  t.equal(each.judge(Buffer.from(': comment\n\n')), 'silence');
  t.equal(each.judge(event('begin')), 'silence', 'a start alone may still become an error with a status');
  t.equal(each.judge(Buffer.concat([event('a'), event('b')])), 'meaningful');
  t.equal(each.pass(Buffer.concat([event('a'), event('b')])).toString(), '<start><a><b>');
  t.equal(each.pass(event('c')).toString(), '<c>');
  t.equal(each.pass(event('stop')).toString(), '<end>');
  t.strictSame(each.end(), { last: Buffer.alloc(0), error: null });
});

test('of usages without end that come before an answer the last one is passed', (t) => {
  const each = transform();
  // Looking through all that wait at each of them would not end.
  const usages = Buffer.concat([
    event('begin'),
    Buffer.alloc(100_000 * event('count').length, event('count')),
  ]);
  t.equal(each.judge(usages), 'silence');
  t.equal(each.judge(event('count')), 'silence');
  t.equal(each.judge(event('a')), 'meaningful');
  t.equal(each.pass(event('a')).toString(), '<start><usage><a>');
  t.end();
});

test('what is gathered of a stream to be kept counts as kept of it', async (t) => {
  let gathered = 0;
  const each = transform({
    id: 'x',
    isAsked: false,
    bytes: 0,
    echo: null,
    needed: [],
    see: (run) => {
      gathered += run.length;
    },
    gathered: () => gathered,
    records: () => [],
    unkept: (end) => end,
  });
  each.judge(event('a'));
  each.pass(event('a'));
  t.equal(each.gatheredBytes, '<a>'.length);
  each.pass(event('bc'));
  t.equal(each.gatheredBytes, '<a><bc>'.length);
});

test('an error before anything else is an error, not a stream', async (t) => {
  const each = transform();
  t.equal(each.judge(event('begin')), 'silence');
  t.match(each.judge(event('fail')), { kind: 'overloaded' });
});

test('an error in the middle is told in the stream, and nothing after it', async (t) => {
  const each = transform();
  each.judge(event('a'));
  t.equal(each.pass(event('a')).toString(), '<a>');
  t.equal(each.pass(Buffer.concat([event('fail'), event('b')])).toString(), '!full!');
  t.equal(each.failure?.error.kind, 'overloaded');
});

test('a stream that ends early says so', async (t) => {
  const each = transform();
  each.judge(event('a'));
  each.pass(event('a'));
  const { last, error } = each.end();
  t.equal(last?.toString(), '!cut!');
  t.equal(error, null, 'its words are in what is still to be sent');
  t.ok(each.passedError);
});

test('a usage that was told before the last text is not all of it', async (t) => {
  const each = transform();
  each.judge(event('begin'));
  each.judge(event('a'));
  each.pass(event('a'));
  each.pass(Buffer.concat([event('count'), event('b'.repeat(40))]));
  t.match(each.usageAtEnd('upstream'), { input: 1, output: 11, partial: true });
  each.pass(event('count'));
  t.strictSame(each.usageAtEnd('client'), { ...usage, output: 2 });
});

test('the same comes out however the bytes are cut', async () => {
  const stream = Buffer.concat(['begin', 'ä€', 'b', 'stop'].map((word) => event(word)));
  const whole = '<start><ä€><b><end>';
  fc.assert(
    fc.property(fc.array(fc.nat({ max: stream.length }), { maxLength: 8 }), (cuts) => {
      const each = transform();
      const runs = new EventRuns(1024);
      const edges = [0, ...cuts.sort((a, b) => a - b), stream.length];
      let out = '';
      let judged = false;
      for (let i = 1; i < edges.length; i++) {
        const run = runs.push(stream.subarray(edges[i - 1], edges[i]));
        if (run === null) continue;
        if (!judged) judged = each.judge(run) === 'meaningful';
        if (judged) out += each.pass(run).toString();
      }
      return out + (each.end().last?.toString() ?? '') === whole;
    }),
  );
});

test('events become the elements of one array', async (t) => {
  const words: string[] = [];
  const each = new ArrayTransform({
    rules: wholeAnswers(
      () => null,
      reportedMetering,
      () => 'meaningful',
    ),
    hideUsage: false,
    streamsUnasked: false,
    amend: null,
    keep: null,
    inputEstimate: 0,
    tokens: unknownTokens,
    secrets: ownSecrets([], []),
  });
  words.push(each.pass(Buffer.from('data: {"a":1}\n\n: comment\n\ndata: {"b":2}\n\n')).toString());
  words.push(each.pass(Buffer.from('data: {"c":3}\r\n\r\n')).toString());
  t.strictSame(JSON.parse([...words, each.end().last?.toString()].join('')), [{ a: 1 }, { b: 2 }, { c: 3 }]);
  const broken = [...words, each.lastWords(new GatewayError('upstream_error'), 'data: {"error":{}}\n\n')];
  t.strictSame(JSON.parse(broken.join('')).at(-1), { error: {} });
});
