import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import type { Answer } from '../suites/translation/client.js';
import { generateContentClient } from '../suites/translation/generate-content-client.js';
import { clients } from '../suites/translation/session.js';
import { others, type Reader, readers, singleBytes, transformOf, translated, wrongCuts } from './cuts.js';
import { answers, decorated, failures, inputs, spoken, streamOf, thought } from './upstream-streams.js';

const allReaders: readonly Reader[] = [
  ...readers,
  { name: 'generateContent in an array', client: generateContentClient, framing: 'array' },
];

/** The translation of a whole stream as its reader's client understands it. */
function understood(upstream: TextProtocolName, reader: Reader, stream: string): Answer {
  const transform = transformOf(upstream, reader);
  const text = Buffer.from(translated([Buffer.from(stream)], transform), 'latin1').toString();
  const body = text.slice(0, text.lastIndexOf('\n'));
  if (reader.framing === 'sse') return reader.client.readStream(body);
  const events = (JSON.parse(body) as object[]).map((event) => `data: ${JSON.stringify(event)}\n\n`);
  return reader.client.readStream(events.join(''));
}

const windows = (stream: string): string => stream.replaceAll('\n', '\r\n');

/** The ways in which the same events may be written. */
const spellings: Readonly<Record<string, (stream: string) => string>> = {
  LF: (stream) => stream,
  CRLF: windows,
  CR: (stream) => stream.replaceAll('\n', '\r'),
  'comments and other fields': decorated,
  'comments, other fields and CRLF': (stream) => windows(decorated(stream)),
  'no blank line at the end': (stream) => stream.trimEnd(),
};

for (const { protocol } of clients) {
  const stream = streamOf(answers[protocol]);

  test(`an answer of ${protocol} is understood by every client, however it is written`, async (t) => {
    for (const reader of allReaders) {
      const plain = understood(protocol, reader, stream);
      t.equal(plain.error, null, reader.name);
      t.equal(plain.text, spoken, reader.name);
      t.equal(plain.reasoning, thought, reader.name);
      t.strictSame(
        plain.calls.map(({ name, args }) => [name, args]),
        [
          ['get_weather', JSON.parse(inputs[0])],
          ['get_time', JSON.parse(inputs[1])],
        ],
        reader.name,
      );
      t.match(plain.usage, { input: 11, output: 22 }, reader.name);
    }
    for (const reader of allReaders) {
      const whole = translated([Buffer.from(stream)], transformOf(protocol, reader));
      for (const [name, spelled] of Object.entries(spellings)) {
        const bytes = Buffer.from(spelled(stream));
        t.equal(translated([bytes], transformOf(protocol, reader)), whole, `${reader.name}: ${name}`);
        const single = translated(singleBytes(bytes), transformOf(protocol, reader));
        t.equal(single, whole, `${reader.name}: ${name}, byte by byte`);
      }
    }
  });

  test(`an answer of ${protocol} is the same wherever it is cut`, async (t) => {
    const bytes = Buffer.from(stream);
    for (const reader of readers) t.strictSame(wrongCuts(bytes, reader, protocol), [], `for ${reader.name}`);
  });

  test(`an answer of ${protocol} with comments and CRLF is the same wherever it is cut`, async (t) => {
    const bytes = Buffer.from(windows(decorated(stream)));
    const [reader] = others(protocol);
    t.strictSame(wrongCuts(bytes, reader, protocol), [], `for ${reader.name}`);
  });

  test(`a stream of ${protocol} that fails is the same wherever it is cut`, async (t) => {
    const begun = answers[protocol].slice(0, 6);
    const streams = {
      'an error': streamOf([...begun, failures[protocol], ...begun.slice(0, 1)]),
      'a sudden end': windows(streamOf(begun)),
    };
    for (const [name, text] of Object.entries(streams)) {
      const bytes = Buffer.from(text);
      for (const reader of others(protocol)) {
        const whole = translated([bytes], transformOf(protocol, reader));
        t.notMatch(whole, /"error":null\}$/, `for ${reader.name}, ${name} is told`);
        t.strictSame(wrongCuts(bytes, reader, protocol), [], `for ${reader.name}, with ${name}`);
      }
    }
  });
}

test('an answer without usage has the same estimate wherever it is cut', async (t) => {
  for (const { protocol } of clients) {
    const events = answers[protocol].map((event) =>
      (typeof event === 'string' ? event : JSON.stringify(event)).replace(
        /,"(usage|usageMetadata)":(\{[^{}]*\}|null)/,
        '',
      ),
    );
    const bytes = Buffer.from(streamOf(events));
    // What is counted is what the upstream's decoder gives.
    const [reader] = others(protocol);
    const whole = translated([bytes], transformOf(protocol, reader));
    t.match(whole, /\{"usage":\{"input":5,"output":[1-9]\d*,.*"error":null\}$/, protocol);
    t.strictSame(wrongCuts(bytes, reader, protocol), [], `${protocol} for ${reader.name}`);
  }
});
