import { test } from 'tap';
import { ownSecrets } from '../../src/config/snapshot.js';
import type { StreamEvent } from '../../src/conversation/answer.js';
import type { AnswerContext } from '../../src/conversation/codec.js';
import { textProtocols } from '../../src/conversation/request.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { TextTemplate } from '../../src/stream/text-template.js';
import { TranslatedTransform } from '../../src/stream/translate.js';
import { plainText, rawBytes } from '../../src/wire/raw-text.js';
import { parseEvent } from '../../src/wire/sse.js';
import { plainContext, plainSource } from '../conversation/plain.js';
import { cases, fc } from '../support/seed.js';

const event = (text: string, more = ''): string =>
  rawBytes(`data: {"a":1,"text":${JSON.stringify(text)}${more}}\n\n`);

const collect = (template: TextTemplate, bytes: string): number => template.collect(bytes, 0, []);

const secrets = ownSecrets([], []);

test('the next event of the same form is known by the bytes around its text', async (t) => {
  const template = new TextTemplate('text');
  template.learn(event('é one'), 'é one');
  const texts: string[] = [];
  const next = event('two é\n"');
  t.equal(template.collect(next, 0, texts), next.length);
  t.strictSame(texts.map(plainText), ['two é\n"']);
  const row = ['a', 'b', 'c'].map((text) => event(text)).join('');
  t.equal(template.collect(`${row}data: {"a":1,"text":"d","last":1}\n\n`, 0, texts), row.length);
  t.strictSame(texts, ['a', 'b', 'c'], 'up to the first of another form');
});

test('an event of any other form is left to be decoded', async (t) => {
  const template = new TextTemplate('text');
  t.equal(collect(template, event('x')), -1, 'nothing is known yet');
  template.learn(event('x'), 'x');
  for (const other of [
    event('x', ',"usage":{}'),
    'data: {"a":2,"text":"x"}\n\n',
    'data: {"a":1,"text":null}\n\n',
    event(''),
    'data: {"a":1,"text":"\\u0041"}\n\n',
    'data: {"a":1,"text":"\\x"}\n\n',
    'data: {"a":1,"text":"\t"}\n\n',
    'data: {"a":1,"text":"x',
    ': comment\n\n',
  ])
    t.equal(collect(template, other), -1, other);
  t.equal(collect(template, event('y')), event('y').length);
  template.forget();
  t.equal(collect(template, event('y')), -1);
});

test('an event is no model when the text’s place is in doubt', async (t) => {
  for (const [bytes, text] of [
    ['data: {"text":"x","b":{"text":"y"}}\n\n', 'x'],
    ['data: {"text":"x"}\n\n', 'y'],
    ['data: {"other":"x"}\n\n', 'x'],
  ] as const) {
    const template = new TextTemplate('text');
    template.learn(bytes, text);
    t.equal(collect(template, bytes), -1, bytes);
  }
});

test('an upstream whose events all differ is not learned from for ever', async (t) => {
  const template = new TextTemplate('text');
  for (let i = 0; i < 20; i++) template.learn(event('x', `,"n":${i}`), 'x');
  t.equal(collect(template, event('x', ',"n":19')), -1);
});

const context: AnswerContext = { ...plainContext, model: 'mö' };
const source = { ...plainSource, model: 'real' };
/** Two encodings of a response may be completed in different seconds. */
const withoutTime = (text: string): string => text.replace(/"completed_at":\d+/g, '"completed_at":1');
const usage = { input: 1, output: 1, cached: 0, cacheWritten: 0, reasoning: 0 };
const names = textProtocols;

test('a text that is not decoded on its way comes out the same, between every two protocols', async (t) => {
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.string({ unit: 'binary', minLength: 1 }) },
    {
      weight: 4,
      arbitrary: fc.constantFrom('word', ' é', '\n\n', '"quoted"', '\\', '😀', '\u2028', '\u0001'),
    },
    { weight: 1, arbitrary: fc.constant(null) },
  );
  for (const from of names) {
    for (const to of names) {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), (texts, asOne) => {
          const events: StreamEvent[] = [{ kind: 'start', usage: null }];
          for (const text of texts) {
            if (text === null) events.push({ kind: 'reasoning', choice: 0, text: 'hm' });
            // The other half of a pair would come with the next event, which no protocol's text can hold.
            else if (Buffer.from(text).toString() === text) events.push({ kind: 'text', choice: 0, text });
          }
          events.push({ kind: 'finish', choice: 0, reason: 'stop', stopSequence: null });
          events.push({ kind: 'usage', usage });
          events.push({ kind: 'end' });
          const upstreamCodec = textEndpoints[from].translation.codec;
          const clientCodec = textEndpoints[to].translation.codec;
          const upstream = upstreamCodec.createEncoder(context);
          const written = events.map((each) => Buffer.from(upstream.encode(each)));
          const send = (runs: readonly Buffer[]): string => {
            const transform = new TranslatedTransform({
              upstreamCodec,
              source,
              clientCodec,
              context,
              restorer: null,
              inputEstimate: 0,
              tokens: unknownTokens,
              keep: null,
              secrets,
            });
            let out = '';
            let judged = false;
            for (const run of runs) {
              judged ||= transform.judge(run) === 'meaningful';
              if (judged) out += transform.pass(run).toString();
            }
            return out + (transform.end().last?.toString() ?? '');
          };
          const decoder = upstreamCodec.createDecoder(source);
          const encoder = clientCodec.createEncoder(context);
          const decoded: StreamEvent[] = [];
          for (const block of Buffer.concat(written).toString().split('\n\n')) {
            const { event: name, data } = parseEvent(block);
            if (data !== null) decoder.decode(name, data, decoded);
          }
          decoder.finish(decoded);
          const expected = decoded.map((each) => encoder.encode(each)).join('');
          const sent = send(asOne ? [Buffer.concat(written)] : written.filter((run) => run.length > 0));
          return withoutTime(sent) === withoutTime(expected);
        }),
        { numRuns: cases(60) },
      );
    }
  }
  t.pass();
});

test('an estimate counts the characters of texts that were not decoded, too', async (t) => {
  const texts = ['ää', '€', '😀', '"', '\n', '\\', '漢', '한글。'].flatMap((text) =>
    Array<string>(20).fill(text),
  );
  const { codec } = textEndpoints.chat.translation;
  const written = codec.createEncoder(context);
  const run = ['word', ...texts].map((text) => written.encode({ kind: 'text', choice: 0, text })).join('');
  const transform = new TranslatedTransform({
    upstreamCodec: codec,
    source,
    clientCodec: textEndpoints.messages.translation.codec,
    context,
    restorer: null,
    inputEstimate: 0,
    tokens: unknownTokens,
    keep: null,
    secrets,
  });
  t.equal(transform.judge(Buffer.from(run)), 'meaningful');
  transform.pass(Buffer.from(run));
  t.match(transform.usageAtEnd('client'), {
    output: Math.ceil((4 + 20 * (2 + 1 + 2 + 1 + 1 + 1 + 4 + 12)) / 4),
  });
});
