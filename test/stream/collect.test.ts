import { test } from 'tap';
import type { StreamEvent } from '../../src/conversation/events.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { AnswerCollector } from '../../src/stream/collect.js';
import { Sequence } from '../../src/stream/sequence.js';
import { answers, inputs, spoken, streamOf, thought } from '../protocols/upstream-streams.js';
import { clients } from '../suites/translation/session.js';

function collected(events: readonly StreamEvent[]) {
  const collector = new AnswerCollector();
  for (const event of events) collector.add(event);
  return collector.answer();
}

for (const { protocol } of clients) {
  test(`a stream of ${protocol} is put together to the whole answer`, async (t) => {
    const decoder = textEndpoints[protocol].translation.codec.createDecoder({ model: 'u' });
    const sequence = new Sequence();
    const decoded: StreamEvent[] = [];
    for (const block of streamOf(answers[protocol]).split('\n\n')) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data !== undefined) decoder.decode(/^event: (.*)$/m.exec(block)?.[1] ?? null, data, decoded);
    }
    decoder.finish(decoded);
    const ordered: StreamEvent[] = [];
    for (const event of decoded) sequence.push(event, ordered);
    const [choice] = collected(ordered).choices;
    const parts = choice?.parts ?? [];
    const texts = (kind: string) =>
      parts.map((part) => (part.kind === kind && 'text' in part ? part.text : ''));
    t.equal(texts('text').join(''), spoken);
    t.equal(texts('reasoning').join(''), thought);
    t.strictSame(
      parts.flatMap((part) => (part.kind === 'toolCall' ? [[part.name, part.input]] : [])),
      [
        ['get_weather', inputs[0]],
        ['get_time', inputs[1]],
      ],
    );
    t.match(collected(ordered).usage, { input: 11, output: 22 });
  });
}

test('signatures end the reasoning before them, and stand alone where there is none', async (t) => {
  const reasoning = (text: string): StreamEvent => ({ kind: 'reasoning', choice: 0, text });
  const signature = (signature: string): StreamEvent => ({ kind: 'signature', choice: 0, signature });
  const text = (text: string, choice = 0): StreamEvent => ({ kind: 'text', choice, text });
  const { choices } = collected([
    { kind: 'start', usage: null },
    reasoning('a'),
    reasoning('b'),
    signature('s1'),
    signature('s2'),
    text('one '),
    text('another answer', 1),
    text('two'),
    { kind: 'refusal', choice: 0, text: 'no' },
    { kind: 'finish', choice: 0, reason: 'stopSequence', stopSequence: 'X' },
    { kind: 'end' },
  ]);
  t.strictSame(choices, [
    {
      parts: [
        { kind: 'reasoning', text: 'ab', signature: 's1' },
        { kind: 'reasoning', text: '', signature: 's2' },
        { kind: 'text', text: 'one two' },
        { kind: 'refusal', text: 'no' },
      ],
      finish: 'stopSequence',
      stopSequence: 'X',
    },
  ]);
});
