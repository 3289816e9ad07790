import { test } from 'tap';
import { speechRequest } from '../../../src/protocols/audio/schema.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const body = (more: object = {}) => ({ model: 'tts-1', input: 'Hello', voice: 'alloy', ...more });
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

test('every documented member is accepted, and members unknown here', async (t) => {
  takes(t, speechRequest, body());
  for (const format of ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm', null])
    takes(t, speechRequest, body({ response_format: format }));
  for (const speed of [0.25, 1, 4, null]) takes(t, speechRequest, body({ speed }));
  for (const format of ['audio', 'sse', null]) takes(t, speechRequest, body({ stream_format: format }));
  takes(t, speechRequest, body({ voice: { id: 'voice_1' }, instructions: 'slowly', seed: 1 }));
});

const refused: readonly Refused[] = [
  [{ input: 'x', voice: 'v' }, 'model', "Missing required parameter 'model'"],
  [{ model: 'm', voice: 'v' }, 'input', "Missing required parameter 'input'"],
  [{ model: 'm', input: 'x' }, 'voice', "Missing required parameter 'voice'"],
  [body({ input: '' }), 'input', 'a non-empty string'],
  [body({ input: ['x'] }), 'input', 'expected a non-empty string'],
  [body({ voice: null }), 'voice', 'found null'],
  [body({ voice: {} }), 'voice.id', 'Missing required parameter'],
  [body({ voice: '' }), 'voice', 'a non-empty string'],
  [body({ speed: 0.2 }), 'speed', 'between 0.25 and 4'],
  [body({ speed: '1' }), 'speed', 'expected a number'],
  [body({ response_format: 'ogg' }), 'response_format', '"mp3"'],
  [body({ stream_format: 'ws' }), 'stream_format', '"audio"'],
  [{ model: 'm', messages: [] }, 'messages', 'POST /v1/chat/completions'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0])}`, async (t) => refuses(t, speechRequest, one));
}

test('a text of up to 4096 characters is accepted, however many bytes they take', async (t) => {
  for (const character of ['a', 'é', '日', '😀', '\n', '"', '\u0001']) {
    const longest = body({ input: character.repeat(4096) });
    t.ok(speechRequest.accept(bytes(longest)), character);
    t.throws(() => speechRequest.accept(bytes({ ...longest, input: `${longest.input}a` })), {
      status: 400,
      param: 'input',
      message: "Invalid value for 'input': expected a string of at most 4096 characters, found one of 4097.",
    });
  }
});

test('a large body that is otherwise wrong is left to the other check', async (t) => {
  const instructions = 'x'.repeat(5000);
  t.ok(speechRequest.accept(bytes(body({ instructions }))));
  t.equal(speechRequest.accept(bytes(body({ instructions, input: 1 }))), null);
  t.equal(speechRequest.accept(Buffer.from(`{"input":"${'x'.repeat(5000)}`)), null);
  t.equal(speechRequest.accept(bytes(['x'.repeat(5000)])), null);
});
