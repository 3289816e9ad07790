import { test } from 'tap';
import { describeAudio } from '../../../src/simulator/media/audio-text.js';
import { simulate } from '../../support/simulator.js';
import { postJson } from '../media-ask.js';

const path = '/v1/audio/speech';
const input = 'Good morning, everybody.';
const body = (more: object = {}): object => ({ model: 'sim-speech', input, voice: 'alloy', ...more });

test('speech is chunked audio of the format that was asked for', async (t) => {
  const simulator = await simulate(t);
  const types = { mp3: 'audio/mpeg', wav: 'audio/wav', flac: 'audio/flac' };
  for (const [format, type] of Object.entries(types)) {
    const heard = await postJson(simulator, path, body({ response_format: format }));
    t.equal(heard.status, 200);
    t.equal(heard.headers.get('content-type'), type);
    t.equal(heard.headers.get('transfer-encoding'), 'chunked');
    t.match(describeAudio(heard.bytes), { container: format, text: input });
  }
  const pcm = await postJson(simulator, path, body({ response_format: 'pcm' }));
  t.equal(pcm.headers.get('content-type'), 'audio/pcm');
  t.ok(pcm.bytes.length > 24_000 && pcm.bytes.length % 2 === 0);
  const usual = await postJson(simulator, path, body());
  t.equal(usual.headers.get('content-type'), 'audio/mpeg');
  const again = await postJson(simulator, path, body());
  t.ok(again.bytes.equals(usual.bytes), 'the same request has the same answer');
});

test('twice the speed is half of the time', async (t) => {
  const simulator = await simulate(t);
  const seconds = async (speed: number): Promise<number> => {
    const heard = await postJson(simulator, path, body({ response_format: 'wav', speed }));
    return describeAudio(heard.bytes).seconds ?? 0;
  };
  const slow = await seconds(0.5);
  t.ok((await seconds(1)) < slow && slow > 0);
});

test('as events the audio is the same', async (t) => {
  const simulator = await simulate(t);
  const whole = await postJson(simulator, path, body({ voice: { id: 'voice_1' } }));
  const heard = await postJson(simulator, path, body({ voice: { id: 'voice_1' }, stream_format: 'sse' }));
  t.match(heard.headers.get('content-type'), /^text\/event-stream/);
  const deltas = heard.events.slice(0, -1);
  t.ok(deltas.every((event) => event.type === 'speech.audio.delta'));
  const bytes = Buffer.concat(deltas.map((event) => Buffer.from(String(event.audio), 'base64')));
  t.ok(bytes.equals(whole.bytes));
  t.match(heard.events.at(-1), {
    type: 'speech.audio.done',
    usage: { input_tokens: 6, output_tokens: Number, total_tokens: Number },
  });
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [body({ model: undefined }), 400, 'model'],
    [body({ model: 'nope' }), 404, 'model'],
    [body({ input: undefined }), 400, 'input'],
    [body({ input: '' }), 400, 'input'],
    [body({ input: 'x'.repeat(4097) }), 400, 'input'],
    [body({ voice: undefined }), 400, 'voice'],
    [body({ voice: 'nobody' }), 400, 'voice'],
    [body({ voice: {} }), 400, 'voice'],
    [body({ response_format: 'ogg' }), 400, 'response_format'],
    [body({ speed: 5 }), 400, 'speed'],
    [body({ speed: '1' }), 400, 'speed'],
    [body({ stream_format: 'chunks' }), 400, 'stream_format'],
    [body({ instructions: 5 }), 400, 'instructions'],
  ];
  for (const [sent, status, param] of refused) {
    const heard = await postJson(simulator, path, sent);
    t.equal(heard.status, status, param);
    t.equal(JSON.parse(heard.text).error.param, param);
  }
  t.equal((await postJson(simulator, path, '[1')).status, 400);
});

test('formats without an encoder are refused with those that there are', async (t) => {
  const simulator = await simulate(t);
  for (const format of ['opus', 'aac']) {
    const heard = await postJson(simulator, path, body({ response_format: format }));
    t.equal(heard.status, 400);
    t.match(JSON.parse(heard.text).error.message, /mp3, wav, pcm, flac/);
  }
});

test('faults are asked for in the input, which does not speak them', async (t) => {
  const simulator = await simulate(t);
  const failed = await postJson(simulator, path, body({ input: `[[fault:status=503]] ${input}` }));
  t.match([failed.status, JSON.parse(failed.text).error.code], [503, 'service_unavailable']);
  const late = await postJson(simulator, path, body({ input: `[[fault:latency=1]] ${input}` }));
  t.equal(describeAudio(late.bytes).text, input);
  const cut = postJson(simulator, path, body({ input: `[[fault:truncate after=1]] ${input}` }));
  await t.rejects(cut, 'the connection ends inside of the body');
});
