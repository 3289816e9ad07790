import { test } from 'tap';
import { speech } from '../../../src/simulator/media/speech.js';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Field, file, type Given, originOf, postForm } from '../media-ask.js';

const path = '/v1/audio/transcriptions';
const translations = '/v1/audio/translations';
const text = 'Good morning, everybody. The quick brown fox jumps over the lazy dog.';
const spoken = Buffer.concat([...speech({ text, voice: 'alloy', format: 'mp3', speed: 1 })]);
const model: Field = ['model', 'sim-transcribe'];
const audio: Field = ['file', file('talk.mp3', 'audio/mpeg', spoken)];
const noise: Field = ['file', file('noise.wav', 'audio/wav')];

function transcribe(simulator: Simulator, more: readonly Field[] = []): Promise<Given> {
  return postForm(simulator, path, [audio, model, ...more]);
}

test('json has the text that was spoken, and what it cost', async (t) => {
  const simulator = await simulate(t);
  const heard = await transcribe(simulator);
  t.equal(heard.status, 200);
  t.equal(heard.headers.get('content-type'), 'application/json');
  const answer = JSON.parse(heard.text);
  t.strictSame(Object.keys(answer), ['text', 'usage']);
  t.equal(answer.text, text);
  t.equal(answer.usage.type, 'duration');
  t.ok(answer.usage.seconds > 0);
});

test('a file of something else is named, with its size', async (t) => {
  const simulator = await simulate(t);
  const heard = await postForm(simulator, path, [noise, model]);
  t.equal(JSON.parse(heard.text).text, 'Simulated transcription of noise.wav (10 bytes).');
});

test('verbose_json has segments, words or both, in order and within the duration', async (t) => {
  const simulator = await simulate(t);
  const verbose: Field = ['response_format', 'verbose_json'];
  const answer = JSON.parse((await transcribe(simulator, [verbose, ['language', 'en']])).text);
  t.match(answer, { task: 'transcribe', language: 'english', text, duration: Number });
  t.equal(answer.segments.length, 2);
  t.notOk('words' in answer);
  t.match(answer.segments[1], {
    id: 1,
    seek: 0,
    start: Number,
    end: Number,
    text: ' The quick brown fox jumps over the lazy dog.',
    tokens: [Number],
    temperature: 0,
    avg_logprob: Number,
    compression_ratio: Number,
    no_speech_prob: Number,
  });
  const word: Field = ['timestamp_granularities[]', 'word'];
  const words = JSON.parse((await transcribe(simulator, [verbose, word])).text);
  t.notOk('segments' in words);
  t.equal(words.words.map((one: { word: string }) => one.word).join(' '), text);
  let before = 0;
  for (const { start, end } of words.words) {
    t.ok(start >= before && end >= start && end <= words.duration + 0.01);
    before = start;
  }
  const segment: Field = ['timestamp_granularities[]', 'segment'];
  const both = JSON.parse((await transcribe(simulator, [verbose, word, segment])).text);
  t.ok(both.words.length > 0 && both.segments.length > 0);
  const bare = JSON.parse((await transcribe(simulator, [verbose, ['timestamp_granularities', 'word']])).text);
  t.ok(bare.words.length > 0, 'without brackets too');
});

test('text, srt and vtt are texts', async (t) => {
  const simulator = await simulate(t);
  const plain = await transcribe(simulator, [['response_format', 'text']]);
  t.equal(plain.headers.get('content-type'), 'text/plain; charset=utf-8');
  t.equal(plain.text, `${text}\n`);
  const srt = await transcribe(simulator, [['response_format', 'srt']]);
  t.equal(srt.headers.get('content-type'), 'text/plain; charset=utf-8');
  t.match(srt.text, /^1\n00:00:00,000 --> 00:00:\d\d,\d{3}\nGood morning, everybody\.\n\n2\n00:00:/);
  const vtt = await transcribe(simulator, [['response_format', 'vtt']]);
  t.equal(vtt.headers.get('content-type'), 'text/vtt; charset=utf-8');
  t.match(vtt.text, /^WEBVTT\n\n00:00:00\.000 --> 00:00:\d\d\.\d{3}\nGood morning, everybody\.\n\n/);
});

test('a stream has the text in deltas, then whole', async (t) => {
  const simulator = await simulate(t);
  const heard = await transcribe(simulator, [
    ['stream', 'true'],
    ['include[]', 'logprobs'],
  ]);
  t.match(heard.headers.get('content-type'), /^text\/event-stream/);
  const deltas = heard.events.filter((event) => event.type === 'transcript.text.delta');
  t.equal(deltas.map((event) => event.delta).join(''), text);
  t.match(deltas[0], { logprobs: [{ token: String, logprob: Number, bytes: [Number] }] });
  t.match(heard.events.at(-1), {
    type: 'transcript.text.done',
    text,
    usage: { type: 'tokens', input_tokens: Number, output_tokens: Number, total_tokens: Number },
  });
});

test('a translation is English and has no words', async (t) => {
  const simulator = await simulate(t);
  const ask = (more: readonly Field[]): Promise<Given> =>
    postForm(simulator, translations, [audio, model, ...more]);
  t.equal(JSON.parse((await ask([])).text).text, `Simulated translation of "${text}".`);
  const verbose = JSON.parse((await ask([['response_format', 'verbose_json']])).text);
  t.match(verbose, { task: 'translate', language: 'english', segments: [{ id: 0 }] });
  t.notOk('words' in verbose);
  const other = await postForm(simulator, translations, [noise, model, ['response_format', 'text']]);
  t.equal(other.text, 'Simulated translation of noise.wav (10 bytes).\n');
  t.match((await ask([['response_format', 'srt']])).text, /^1\n/);
  t.match((await ask([['response_format', 'vtt']])).text, /^WEBVTT\n/);
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [readonly Field[], number, string | null][] = [
    [[model], 400, 'file'],
    [[audio], 400, 'model'],
    [[audio, ['model', 'nope']], 404, 'model'],
    [[['file', 'text'], model], 400, 'file'],
    [[audio, audio, model], 400, 'file'],
    [[['file', file('empty.mp3', 'audio/mpeg', Buffer.alloc(0))], model], 400, 'file'],
    [[['file', file('talk.txt', 'text/plain')], model], 400, 'file'],
    [[audio, model, model], 400, 'model'],
    [[audio, model, ['response_format', 'diarized_json']], 400, 'response_format'],
    [[audio, model, ['temperature', '1.5']], 400, 'temperature'],
    [[audio, model, ['temperature', 'warm']], 400, 'temperature'],
    [[audio, model, ['language', 'English']], 400, 'language'],
    [[audio, model, ['timestamp_granularities[]', 'word']], 400, 'timestamp_granularities'],
    [
      [audio, model, ['response_format', 'verbose_json'], ['timestamp_granularities[]', 'letter']],
      400,
      'timestamp_granularities',
    ],
    [[audio, model, ['stream', 'true'], ['response_format', 'srt']], 400, 'stream'],
    [[audio, model, ['stream', 'yes']], 400, 'stream'],
  ];
  for (const [fields, status, param] of refused) {
    const heard = await postForm(simulator, path, fields);
    const shown = JSON.stringify(fields.map(([name, value]) => [name, String(value)]));
    t.equal(heard.status, status, shown);
    t.equal(JSON.parse(heard.text).error.param, param, shown);
  }
});

test('another content type, a form that is none and a name that is empty are refused', async (t) => {
  const simulator = await simulate(t);
  const send = async (type: string, body: string): Promise<object> => {
    const answer = await fetch(originOf(simulator) + path, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    t.equal(answer.status, 400);
    return (await answer.json()) as object;
  };
  t.match(await send('application/json', '{}'), { error: { code: 'unsupported_content_type' } });
  t.match(await send('multipart/form-data', '--x--\r\n'), { error: { code: 'invalid_multipart_form' } });
  const cut = '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nsim-tran';
  t.match(await send('multipart/form-data; boundary=x', cut), { error: { code: 'invalid_multipart_form' } });
  const nameless =
    '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nsim-transcribe\r\n' +
    '--x\r\ncontent-disposition: form-data; name="file"; filename=""\r\n\r\nbytes\r\n--x--\r\n';
  t.match(await send('multipart/form-data; boundary=x', nameless), { error: { param: 'file' } });
});

test('faults are asked for in the prompt', async (t) => {
  const simulator = await simulate(t);
  const limited = await transcribe(simulator, [['prompt', '[[fault:status=429 retry-after=7]] names']]);
  t.match([limited.status, limited.headers.get('retry-after')], [429, '7']);
  const broken = await transcribe(simulator, [
    ['prompt', '[[fault:error-event after=2]]'],
    ['stream', 'true'],
  ]);
  t.equal(broken.events.length, 3);
  t.match(broken.events[2], { error: { type: 'server_error' } });
});
