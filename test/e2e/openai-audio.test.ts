import { type Test, test } from 'tap';
import { speech } from '../../src/simulator/media/speech.js';
import { startGateway } from '../support/gateway.js';
import { type Client, collect, createClient, raised, type Sdk, sdks } from '../support/sdks/openai.js';

const text = 'Good morning, everybody. The quick brown fox jumps over the lazy dog.';
const spoken = Buffer.concat([...speech({ text, voice: 'alloy', format: 'mp3', speed: 1 })]);
const transcribe = 'sim-transcribe';

type Transcription = Parameters<Client['audio']['transcriptions']['create']>[0];
type Translation = Parameters<Client['audio']['translations']['create']>[0];
type Fields = Readonly<Record<string, unknown>>;

function talk({ module }: Sdk): Promise<File> {
  return module.toFile(spoken, 'talk.mp3', { type: 'audio/mpeg' }) as Promise<File>;
}

async function start(t: Test, sdk: Sdk) {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const client = createClient(sdk, gateway);
  const file = await talk(sdk);
  return {
    gateway,
    file,
    // Beyond what the SDK's types know, since what is wrong is sent, too.
    transcribe: (fields: Fields = {}) =>
      client.audio.transcriptions.create({
        file,
        model: transcribe,
        ...fields,
      } as unknown as Transcription) as unknown as Promise<unknown>,
    translate: (fields: Fields = {}) =>
      client.audio.translations.create({
        file,
        model: transcribe,
        ...fields,
      } as unknown as Translation) as unknown as Promise<unknown>,
  };
}

for (const sdk of sdks) {
  test(`${sdk.name}: a transcription in all formats`, async (t) => {
    const { transcribe } = await start(t, sdk);
    t.match(await transcribe(), { text, usage: { type: 'duration', seconds: Number } });
    t.match(
      await transcribe({ response_format: 'json', language: 'en', prompt: 'foxes', temperature: 0.5 }),
      {
        text,
      },
    );
    t.equal(await transcribe({ response_format: 'text' }), `${text}\n`);
    t.match(
      await transcribe({ response_format: 'srt' }),
      /^1\n00:00:00,000 --> 00:00:\d\d,\d{3}\nGood morning, everybody\.\n\n2\n/,
    );
    t.match(await transcribe({ response_format: 'vtt' }), /^WEBVTT\n\n00:00:00\.000 --> 00:00:/);
    const verbose = await transcribe({ response_format: 'verbose_json' });
    t.match(verbose, { task: 'transcribe', language: 'english', duration: Number, text });
    t.match(verbose, {
      segments: [
        { id: 0, start: 0 },
        { id: 1, tokens: [Number] },
      ],
    });
    const words = await transcribe({ response_format: 'verbose_json', timestamp_granularities: ['word'] });
    t.match(words, { words: [{ word: 'Good', start: Number, end: Number }] });
    t.notOk('segments' in (words as object));
    const both = await transcribe({
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    t.match(both, { words: [{ word: 'Good' }], segments: [{ id: 0 }] });
  });

  test(`${sdk.name}: a transcription as a stream`, async (t) => {
    const { transcribe } = await start(t, sdk);
    interface Event {
      readonly type: string;
      readonly delta?: string;
      readonly text?: string;
      readonly usage?: object;
    }
    const stream = (await transcribe({ stream: true })) as AsyncIterable<Event>;
    const events = await collect(stream);
    const deltas = events.slice(0, -1);
    t.ok(deltas.length > 3 && deltas.every(({ type }) => type === 'transcript.text.delta'));
    t.equal(deltas.map(({ delta }) => delta).join(''), text);
    t.match(events.at(-1), { type: 'transcript.text.done', text, usage: { input_tokens: Number } });
    const prompt = '[[fault:close after=2]] foxes';
    const broken = (await transcribe({ stream: true, prompt })) as AsyncIterable<Event>;
    t.match(await raised(sdk, collect(broken)), { code: 'upstream_error' });
  });

  test(`${sdk.name}: translations in all formats`, async (t) => {
    const { translate } = await start(t, sdk);
    const english = `Simulated translation of "${text}".`;
    t.match(await translate(), { text: english });
    t.equal(await translate({ response_format: 'text' }), `${english}\n`);
    t.match(await translate({ response_format: 'srt' }), /^1\n/);
    t.match(await translate({ response_format: 'vtt' }), /^WEBVTT\n/);
    const verbose = await translate({ response_format: 'verbose_json', temperature: 0, prompt: 'foxes' });
    t.match(verbose, { task: 'translate', language: 'english', segments: [{ id: 0 }] });
    t.notOk('words' in (verbose as object));
    for (const [param, value] of [
      ['response_format', 'diarized_json'],
      ['temperature', 2],
    ])
      t.match(await raised(sdk, translate({ [param as string]: value })), { status: 400, param });
  });

  test(`${sdk.name}: what is wrong with a form is an error with its parameter`, async (t) => {
    const { gateway, transcribe } = await start(t, sdk);
    const { BadRequestError, NotFoundError, AuthenticationError, RateLimitError } = sdk.module;
    const wrong: readonly (readonly [Fields, string])[] = [
      [{ file: undefined }, 'file'],
      [{ file: 'text' }, 'file'],
      [{ model: undefined }, 'model'],
      [{ model: '' }, 'model'],
      [{ response_format: 'diarized_json' }, 'response_format'],
      [{ temperature: 1.5 }, 'temperature'],
      [{ temperature: -1 }, 'temperature'],
      [{ temperature: 'warm' }, 'temperature'],
      [{ stream: 'perhaps' }, 'stream'],
      [{ timestamp_granularities: ['word'] }, 'timestamp_granularities'],
      [{ language: ['en', 'de'] }, 'language'],
    ];
    for (const [fields, param] of wrong) {
      const error = await raised(sdk, transcribe(fields));
      t.ok(error instanceof BadRequestError, `${JSON.stringify(fields)}: ${error.message}`);
      t.match(error, { status: 400, param, type: 'invalid_request_error' }, JSON.stringify(fields));
    }
    const unknown = await raised(sdk, transcribe({ model: 'none' }));
    t.ok(unknown instanceof NotFoundError);
    t.match(unknown, { code: 'model_not_found', param: 'model' });
    t.ok((await raised(sdk, transcribe({ model: 'sim-text' }))) instanceof NotFoundError, 'no audio model');
    t.ok((await raised(sdk, transcribe({ prompt: '[[fault:status=429]] x' }))) instanceof RateLimitError);
    const stranger = createClient(sdk, gateway, { apiKey: 'sk-nobody' });
    const file = await talk(sdk);
    t.ok(
      (await raised(sdk, stranger.audio.transcriptions.create({ file, model: 'sim-transcribe' }))) instanceof
        AuthenticationError,
    );
    const trial = createClient(sdk, gateway, { apiKey: 'sk-demo-trial' });
    t.ok(
      (await raised(sdk, trial.audio.transcriptions.create({ file, model: 'sim-transcribe' }))) instanceof
        NotFoundError,
      "another group's model",
    );
  });

  test(`${sdk.name}: fields that nobody knows pass`, async (t) => {
    const { transcribe } = await start(t, sdk);
    t.match(await transcribe({ x_new: 'value', x_list: ['a', 'b'], x_object: { a: 1 } }), { text });
  });
}
