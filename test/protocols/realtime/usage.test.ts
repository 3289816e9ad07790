import { test } from 'tap';
import { addUsage, noParts } from '../../../src/conversation/usage.js';
import { ServerEvent } from '../../../src/protocols/realtime/event-type.js';
import { secondsOfEvent, usageOfEvent } from '../../../src/protocols/realtime/usage.js';

const eventOf = (value: object) => new ServerEvent(Buffer.from(JSON.stringify(value)));
const done = {
  type: 'response.done',
  event_id: 'event_1',
  response: {
    usage: {
      total_tokens: 275,
      input_tokens: 127,
      output_tokens: 148,
      input_token_details: {
        text_tokens: 97,
        audio_tokens: 20,
        image_tokens: 10,
        cached_tokens: 64,
        cached_tokens_details: { text_tokens: 50, audio_tokens: 8, image_tokens: 6 },
      },
      output_token_details: { text_tokens: 30, audio_tokens: 118 },
    },
  },
};
const used = {
  input: 127,
  output: 148,
  cached: 64,
  cacheWritten: 0,
  reasoning: 0,
  parts: {
    ...noParts,
    audioInput: 20,
    imageInput: 10,
    cachedAudio: 8,
    cachedImage: 6,
    audioOutput: 118,
  },
};
const transcribed = (usage: object) => ({
  type: 'conversation.item.input_audio_transcription.completed',
  transcript: 'a "response.done"',
  usage,
});

test('a response tells its tokens by their kind, cached ones too', async (t) => {
  t.same(usageOfEvent(eventOf(done)), used);
  t.equal(usageOfEvent(eventOf({ type: 'response.created', response: done.response })), null);
});

test('a server may sort the members of its events', async (t) => {
  const { type, response } = done;
  const long = { ...response, id: 'x'.repeat(300), metadata: { type: 'else' } };
  t.same(usageOfEvent(eventOf({ response: long, type })), used);
  t.equal(usageOfEvent(eventOf({ response: { ...long, type } })), null, 'a type that stands deeper');
});

test('the transcript of what was said tells tokens or seconds', async (t) => {
  const tokens = transcribed({
    type: 'tokens',
    total_tokens: 22,
    input_tokens: 13,
    input_token_details: { text_tokens: 0, audio_tokens: 13 },
    output_tokens: 9,
  });
  t.match(usageOfEvent(eventOf(tokens)), { input: 13, output: 9, parts: { audioInput: 13 } });
  t.equal(secondsOfEvent(eventOf(tokens)), 0);
  const seconds = transcribed({ type: 'duration', seconds: 4.5 });
  t.equal(usageOfEvent(eventOf(seconds)), null);
  t.equal(secondsOfEvent(eventOf(seconds)), 4.5);
  for (const odd of [-1, '3', null]) t.equal(secondsOfEvent(eventOf(transcribed({ seconds: odd }))), 0);
  t.equal(secondsOfEvent(eventOf({ type: 'else', usage: { seconds: 4 } })), 0);
});

test('what the responses of a session have used adds up, kind by kind', async (t) => {
  t.same(addUsage(null, used), used);
  const twice = addUsage(used, { ...used, searches: 2, tier: 'priority' });
  t.match(twice, {
    input: 254,
    cached: 128,
    searches: 2,
    tier: 'priority',
    parts: { audioInput: 40, imageInput: 20, cachedAudio: 16, cachedImage: 12, audioOutput: 236 },
  });
  const plain = { input: 1, output: 2, cached: 0, cacheWritten: 0, reasoning: 0 };
  t.same(addUsage(plain, plain), { ...plain, input: 2, largestInput: 1, output: 4 });
});

test('what a client has had repeated in an event is no usage', (t) => {
  const metadata = { usage: { input_tokens: 0, output_tokens: 0 }, service_tier: 'flex' };
  t.strictSame(usageOfEvent(eventOf({ ...done, response: { ...done.response, metadata } })), used);
  t.end();
});
