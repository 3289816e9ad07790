import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import {
  isPiece,
  isPlainEvent,
  mayHaveUsage,
  responseDone,
  ServerEvent,
  transcribed,
  typeOfEvent,
} from '../../../src/protocols/realtime/event-type.js';
import { judgeEvent, vendorAccountErrorOfMessage } from '../../../src/protocols/realtime/events.js';
import { usageOfEvent } from '../../../src/protocols/realtime/usage.js';
import { isObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';

const model = {
  model: 'ours',
  upstreamModel: 'theirs',
  allowed: new Set<never>(),
  transcribeBy: (name: string) => name,
};
const isPlain = (text: string): boolean => isPlainEvent(Buffer.from(text));

test('pieces of sound are plain, in every order of their members', (t) => {
  for (const text of [
    '{"type":"input_audio_buffer.append","audio":"UklGRg=="}',
    '{"type": "input_audio_buffer.append", "audio": "UklGRg=="}',
    '{"event_id":"event_1","type":"input_audio_buffer.append","audio":""}',
    '{"type":"response.cancel"}',
    '{"type":"conversation.item.truncate","item_id":"item_1","content_index":0}',
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
    '{"type":"a","audio":"\u0000"}',
    '{"type":"a","audio":"\u00ff"}',
    '{"type":"a","audio":"\\n"}',
    '{"audio":"a"}',
    '{"type":"a","content_index":01}',
    '{"type":"a","content_index":-}',
    '{"type":"a","content_index":null}',
    '{"type":"a","content_index":}',
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
    { numRuns: cases(3000) },
  );
  t.end();
});

test('pieces of sound and text are told from what may tell of an error or of usage', (t) => {
  const piece = (text: string): boolean => isPiece(Buffer.from(text));
  for (const text of [
    '{"type":"response.audio.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":"UklG"}',
    '{"event_id":"e","type":"response.text.delta","delta":"an error, ä and \\n"}',
    '{"type":"input_audio_buffer.cleared"}',
  ])
    t.ok(piece(text), text);
  for (const text of [
    '{"type":"error","event_id":"e"}',
    '{"type":"response.Error"}',
    '{"type":"item.failed"}',
    '{"type":"strange"}',
    '{"type":"\\u0065rror.x"}',
    '{"type":"response.done"}',
    '{"type":"response.created"}',
    `{"type":"${transcribed}"}`,
    '{"type":"a.b","error":{"code":"invalid_api_key"}}',
    '{"type":"a.b","delta":"\\"","type":"error"}',
    '{"type":"a.b","delta":"x"}{"type":"error"}',
    '{"type":"a.b","type":"error"}',
    '{"delta":"x"}',
    `{"delta":"${'x'.repeat(300)}","type":"a.b"}`,
  ])
    t.notOk(piece(text), text);
  t.end();
});

test('a type is judged by itself that begins or ends like one that was harmless', (t) => {
  const piece = (type: string): boolean => isPiece(Buffer.from(`{"type":"${type}","delta":"x"}`));
  t.ok(piece('response.audio.delta'));
  for (const type of [
    'response.audio.delta.error',
    'response.audio.deltafail',
    'response.done',
    'responseaudio',
    '',
  ])
    t.notOk(piece(type), type);
  t.ok(piece('response.audio.delt'));
  t.ok(piece('response.audio.delta'));
  t.notOk(piece('response.audio.delta\\"'));
  t.notOk(isPiece(Buffer.from('{"delta":"x","type":"response.audio.delta')), 'cut');
  t.end();
});

test('what is a piece tells of no error and of no usage', (t) => {
  const secrets = { keys: [], encoded: [], others: [], marks: [] };
  const words = [
    ...['"type"', '"delta"', '"event_id"', '"error"', '"response"', '"code"', '"content_index"'],
    ...['"response.audio.delta"', '"response.done"', '"response.created"', '"error"', '"a.b"', '"401"'],
    ...[
      '"invalid_api_key"',
      `"${transcribed}"`,
      '"\\u0065rror.a"',
      '":"',
      '","',
      '"',
      '\\',
      ':',
      ',',
      '{',
      '}',
      '0',
    ],
  ];
  const members = fc.array(
    fc.tuple(fc.constantFrom(...words), fc.constantFrom(':', ': ', ','), fc.constantFrom(...words)),
    { maxLength: 6 },
  );
  const event = members.map((all) => `{"type":"a.b",${all.map((each) => each.join('')).join(',')}}`);
  const loose = fc.array(fc.constantFrom(...words), { maxLength: 12 }).map((all) => `{${all.join('')}}`);
  fc.assert(
    fc.property(fc.oneof(event, loose), (text) => {
      const bytes = Buffer.from(text);
      if (!isPiece(bytes)) return true;
      return (
        vendorAccountErrorOfMessage(bytes, false, secrets) === null &&
        usageOfEvent(new ServerEvent(bytes)) === null &&
        ![responseDone, transcribed, 'response.created'].includes(typeOfEvent(bytes))
      );
    }),
    { numRuns: cases(3000) },
  );
  t.end();
});

test('no event that tells of usage is passed over', (t) => {
  const ofUsage = [
    ...[responseDone, transcribed, 'response.created', 'session.updated', 'input_audio_buffer.committed'],
    'conversation.item.input_audio_transcription.delta',
  ];
  const types = [...ofUsage, 'response.audio.delta', 'rate_limits.updated', 'x', 'type'];
  const value = fc.constantFrom(...types, '"type":"x"', '\\', '}', 'é', 0, ['type'], { type: 'x' });
  const members = fc.dictionary(fc.constantFrom('event_id', 'item_id', 'response', 'a "type'), value);
  fc.assert(
    fc.property(members, fc.constantFrom(...types), members, (before, type, behind) => {
      const event = Buffer.from(JSON.stringify({ ...before, type, ...behind }));
      return typeOfEvent(event) === type && mayHaveUsage(event) === ofUsage.includes(type);
    }),
  );
  t.notOk(mayHaveUsage(Buffer.from('{"type":"response.audio.delta","content_index":0,"delta":"UklG"}')));
  t.ok(mayHaveUsage(Buffer.from('{"type":"response.done","response":{}}')));
  const inner = { id: 'x'.repeat(300), output: [{ type: 'message' }] };
  t.ok(mayHaveUsage(Buffer.from(JSON.stringify({ event_id: 'e', response: inner, type: responseDone }))));
  t.ok(mayHaveUsage(Buffer.from(JSON.stringify({ response: { type: 'x', ...inner }, type: responseDone }))));
  const named = { item_id: 'type', transcript: inner.id, type: transcribed };
  t.ok(mayHaveUsage(Buffer.from(JSON.stringify(named))), 'an id that is called like the name of a type');
  t.end();
});
