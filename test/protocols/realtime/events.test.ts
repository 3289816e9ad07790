import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import {
  mayTellUsage,
  responseDone,
  transcribed,
  typeBytes,
} from '../../../src/protocols/realtime/event-type.js';
import { judgeEvent } from '../../../src/protocols/realtime/events.js';
import { isPlainEvent } from '../../../src/protocols/realtime/plain-event.js';
import { isObject } from '../../../src/wire/json.js';
import { fc } from '../../support/seed.js';

const model = { model: 'ours', upstreamModel: 'theirs', allowed: new Set<never>() };
const isPlain = (text: string): boolean => isPlainEvent(Buffer.from(text));

test('pieces of sound are plain, in every order of their members', (t) => {
  for (const text of [
    '{"type":"input_audio_buffer.append","audio":"UklGRg=="}',
    '{"type": "input_audio_buffer.append", "audio": "UklGRg=="}',
    '{"event_id":"event_1","type":"input_audio_buffer.append","audio":""}',
    '{"type":"response.cancel"}',
  ])
    t.ok(isPlain(text), text);
  t.end();
});

test('what names anything else, or may be read in two ways, is not plain', (t) => {
  for (const text of [
    '',
    '{',
    '{}',
    '{"type"}',
    '{"type":"a"',
    '{"type":"a"}}',
    '{"type":"a",}',
    '{"type":"a"} ',
    '{"type":"a}',
    '{"type":1}',
    '{"type":"a","type":"b"}',
    '{"type":"session.update","session":{"model":"other"}}',
    '{"type":"a","model":"b"}',
    '{"type":"a\\u0022"}',
    '{"type":"a\nb"}',
    '{"type":"ä"}',
    '{"type":"a","audio":"\u007f"}',
    '[{"type":"a"}]',
  ])
    t.notOk(isPlain(text), JSON.stringify(text));
  t.end();
});

test('what is plain is an object of texts, and passes as it came', (t) => {
  const sign = fc.constantFrom(
    ...'{}":,[] \\a\u0001ä',
    '"type"',
    '"audio"',
    '"event_id"',
    '":"',
    '","',
    '"}',
  );
  const text = fc.array(sign, { maxLength: 12 }).map((signs) => `{"type":"${signs.join('')}"}`);
  fc.assert(
    fc.property(text, (event) => {
      const bytes = Buffer.from(event);
      const judged = judgeEvent(bytes, false, model);
      if (!isPlainEvent(bytes)) return judged instanceof GatewayError || Buffer.isBuffer(judged);
      const parsed: unknown = JSON.parse(event);
      return (
        judged === bytes &&
        isObject(parsed) &&
        Object.values(parsed).every((each) => typeof each === 'string')
      );
    }),
    { numRuns: 3000 },
  );
  t.end();
});

test('no event that tells of usage is passed over', (t) => {
  const words = [
    ...[
      '"response.done"',
      '"response.created"',
      '"response.audio.delta"',
      '"content_index"',
      '"conversation.item',
    ],
    ...[`"${transcribed}"`, '"conversation.item.input_audio_transcription.delta"', 'x', '"', ','],
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 20 }), (parts) => {
      const event = Buffer.from(parts.join(''));
      const type = typeBytes(event);
      const isWanted =
        [responseDone, transcribed, 'response.created'].some((each) => type.includes(`"${each}"`)) ||
        type.includes('"conversation.item.input_audio_transcription.');
      return !isWanted || mayTellUsage(event);
    }),
  );
  t.notOk(mayTellUsage(Buffer.from('{"type":"response.audio.delta","content_index":0,"delta":"UklG"}')));
  t.ok(mayTellUsage(Buffer.from('{"type":"response.done","response":{}}')));
  const inner = { id: 'x'.repeat(300), output: [{ type: 'message' }] };
  t.ok(mayTellUsage(Buffer.from(JSON.stringify({ event_id: 'e', response: inner, type: responseDone }))));
  t.ok(mayTellUsage(Buffer.from(JSON.stringify({ response: { type: 'x', ...inner }, type: responseDone }))));
  t.end();
});
