import { test } from 'tap';
import { noParts } from '../../../src/conversation/usage.js';
import { GatewayError } from '../../../src/errors.js';
import { speech, transcriptions, translations } from '../../../src/protocols/audio/index.js';

const { judgeStart, judgeEnd, marksEnd, usageOf } = transcriptions;
const run = (text: string) => Buffer.from(text);
const nothing = { usageAtStart: null, ended: false };
const event = (body: object, name = '') => `${name && `event: ${name}\n`}data: ${JSON.stringify(body)}\n\n`;
const counted = { type: 'tokens', input_tokens: 14, output_tokens: 5, total_tokens: 19 };
const usage = { input: 14, output: 5, cached: 0, cacheWritten: 0, reasoning: 0 };
const delta = event({ type: 'transcript.text.delta', delta: 'a "transcript.text.done"' });
const sound = event({ type: 'speech.audio.delta', audio: 'UklGRg==' });
const textDone = event({ type: 'transcript.text.done', text: 'ab', usage: counted });
const soundDone = event({ type: 'speech.audio.done', usage: counted });
const mark = 'data: [DONE]\n\n';

test('each endpoint has its path, and its model in the body', async (t) => {
  t.equal(transcriptions.upstreamPath('m', false), '/audio/transcriptions');
  t.equal(translations.upstreamPath('m', false), '/audio/translations');
  t.equal(speech.upstreamPath('m', false), '/audio/speech');
  for (const endpoint of [transcriptions, translations, speech])
    t.match(endpoint, { protocol: 'audio', modelInBody: true, usageOnRequest: false, translation: null });
});

test('an event with data is meaningful, comments are silence', async (t) => {
  t.equal(judgeStart(run(': ping\n\n')), 'silence');
  for (const text of [delta, sound, textDone, mark, event({ error: null }), 'data: x\n\n'])
    t.equal(judgeStart(run(`: ping\n\n${text}`)), 'meaningful', text);
});

test('a first event that is an error is one', async (t) => {
  const errors: readonly (readonly [string, string, string])[] = [
    [event({ error: { message: 'no', code: 'rate_limit_exceeded' } }), 'rate_limit_exceeded', 'no'],
    [event({ type: 'error', error: { message: 'no' } }), 'upstream_error', 'no'],
    [event({ type: 'error', message: 'no', code: 429 }), 'rate_limit_exceeded', 'no'],
    [event({ message: 'no' }, 'error'), 'upstream_error', 'no'],
    [event({ error: 'no' }), 'upstream_error', 'no'],
    ['event: error\ndata: no\n\n', 'upstream_error', 'no'],
    [event({ type: 'error' }), 'upstream_error', 'The upstream answered with an error.'],
  ];
  for (const [text, kind, message] of errors) {
    const verdict = judgeStart(run(text));
    t.ok(verdict instanceof GatewayError && verdict.kind === kind && verdict.message === message, text);
    t.equal(judgeEnd(run(delta + text), nothing).state, 'failed', text);
  }
});

test('a stream is complete with its last event, whatever says nothing behind it', async (t) => {
  for (const text of [delta + textDone, sound + soundDone, textDone + mark, `${soundDone}: bye\n\n${mark}`]) {
    t.same(judgeEnd(run(text), nothing), { state: 'complete', usage, error: null }, text);
    t.equal(marksEnd?.(run(text)), true, text);
  }
  const language = event({ type: 'transcription.language', audio_language: 'en' });
  const piece = event({ type: 'transcription.text.delta', text: 'hi' }, 'transcription.text.delta');
  const last = { type: 'transcription.done', model: 'm', text: 'hi', language: 'en', segments: [] };
  const told = { prompt_audio_seconds: 2, prompt_tokens: 4, completion_tokens: 1, total_tokens: 30 };
  const mistral = language + piece + event({ ...last, usage: told }, 'transcription.done');
  t.match(judgeEnd(run(mistral), nothing), {
    state: 'complete',
    usage: { input: 29, output: 1 },
    error: null,
  });
  t.equal(marksEnd?.(run(mistral)), true);
  const named = 'event: transcript.text.done\ndata: {"text":"x"}\n\n';
  t.same(judgeEnd(run(named), nothing), { state: 'complete', usage: null, error: null });
  t.equal(marksEnd?.(run(named)), true);
  t.same(judgeEnd(run(textDone.trimEnd()), nothing), { state: 'complete', usage, error: null });
});

test('a stream without its last event is incomplete', async (t) => {
  for (const text of [
    '',
    delta,
    sound,
    mark,
    delta + mark,
    textDone + delta,
    textDone.slice(0, -4),
    'data: x\n\n',
  ]) {
    t.equal(judgeEnd(run(text), nothing).state, 'incomplete', text);
    t.equal(marksEnd?.(run(text)), false, text);
  }
  t.equal(judgeEnd(run(delta), { ...nothing, ended: true }).state, 'complete');
});

test('a last event that is larger than what is kept of the stream is known by its usage', async (t) => {
  const cut = textDone.slice(20);
  t.same(judgeEnd(run(cut + mark), nothing), { state: 'complete', usage, error: null });
  t.equal(judgeEnd(run(cut.slice(0, 20)), nothing).state, 'incomplete');
});

test('usage is read from a whole answer that counts tokens', async (t) => {
  for (const endpoint of [transcriptions, translations, speech]) {
    const parts = endpoint === speech ? { parts: { ...noParts, audioOutput: 5 } } : {};
    t.same(endpoint.usageOf(run(JSON.stringify({ text: 'a', usage: counted }))), { ...usage, ...parts });
    for (const text of [
      '',
      '{"usage":{"type":"duration","seconds":4}}',
      '{"usage":null}',
      '1\n00:00:00,000',
      '{"usage":{',
    ])
      t.equal(endpoint.usageOf(run(text)), null, text);
  }
  t.same(usageOf(run('{"text":"\\"usage\\":{\\"input_tokens\\":1}","usage":{"input_tokens":2}}')), {
    ...usage,
    input: 2,
    output: 0,
  });
});

test('no answer makes the readers fail', async (t) => {
  const values = [
    'null',
    '1',
    '"x"',
    '[]',
    '{"type":1}',
    '{"type":"transcript.text.done","usage":[]}',
    '{"error":[]}',
  ];
  for (const value of values) {
    for (const text of [`data: ${value}\n\n`, `event: error\ndata: ${value}\n\n`]) {
      t.doesNotThrow(() => judgeStart(run(text)));
      t.doesNotThrow(() => judgeEnd(run(text), nothing));
      t.doesNotThrow(() => usageOf(run(text)));
    }
  }
});
