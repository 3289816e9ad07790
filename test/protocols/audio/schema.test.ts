import { test } from 'tap';
import { speechRequest } from '../../../src/protocols/audio/index.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const body = (more: object = {}) => ({ model: 'tts-1', input: 'Hello', voice: 'alloy', ...more });

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
  [{ model: 'm', messages: [] }, 'messages', 'POST /v1/chat/completions'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0])}`, async (t) => refuses(t, speechRequest, one));
}

test('how much is spoken, and by whom, is left to the upstream', async (t) => {
  takes(
    t,
    speechRequest,
    body({ input: 'a'.repeat(5000), voice: undefined, speed: 9, response_format: 'ogg' }),
  );
  t.equal(speechRequest.accept(Buffer.from(`{"input":"${'x'.repeat(5000)}`)), null, 'what is cut is refused');
});
