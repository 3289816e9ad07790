import { test } from 'tap';
import { transcriptionForm, translationForm } from '../../../src/protocols/audio/form.js';
import { checkForm, type FormSchema } from '../../../src/schema/form.js';

type Pair = readonly [name: string, value: string];
const file = [{ name: 'file' }];
const read = (form: FormSchema, ...pairs: readonly Pair[]) =>
  checkForm(
    form,
    pairs.map(([name, value]) => ({ name, value })),
    file,
  );
const model: Pair = ['model', 'whisper-1'];

test('every field of a transcription is taken, and fields unknown here', async (t) => {
  t.strictSame(
    read(
      transcriptionForm,
      model,
      ['language', 'en'],
      ['prompt', ''],
      ['response_format', 'verbose_json'],
      ['temperature', '0.2'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
      ['stream', 'true'],
      ['include[]', 'logprobs'],
      ['chunking_strategy', 'auto'],
      ['languages[]', 'de'],
      ['keywords[]', 'a'],
      ['known_speaker_names[]', 'agent'],
      ['hotwords', 'x'],
    ),
    {
      model: 'whisper-1',
      language: 'en',
      prompt: '',
      response_format: 'verbose_json',
      temperature: 0.2,
      timestamp_granularities: ['word', 'segment'],
      stream: true,
      include: ['logprobs'],
      chunking_strategy: 'auto',
      languages: ['de'],
      keywords: ['a'],
      known_speaker_names: ['agent'],
      hotwords: 'x',
    },
  );
  const plain: Pair = ['timestamp_granularities', 'segment'];
  t.match(read(transcriptionForm, model, plain, ['response_format', 'verbose_json']), {
    timestamp_granularities: ['segment'],
  });
  for (const format of ['json', 'text', 'srt', 'vtt', 'verbose_json'])
    t.match(read(translationForm, model, ['response_format', format]), { response_format: format });
});

const refused: readonly (readonly [
  form: FormSchema,
  pairs: readonly Pair[],
  param: string,
  message: string,
])[] = [
  [transcriptionForm, [], 'model', "Missing required parameter 'model'"],
  [transcriptionForm, [['model', '']], 'model', 'a non-empty string'],
  [transcriptionForm, [model, model], 'model', 'more than once'],
  [transcriptionForm, [model, ['temperature', '1.1']], 'temperature', 'between 0 and 1'],
  [
    transcriptionForm,
    [model, ['response_format', 'diarized_json']],
    'response_format',
    'found "diarized_json"',
  ],
  [
    transcriptionForm,
    [model, ['timestamp_granularities[]', 'word']],
    'timestamp_granularities',
    '"verbose_json"',
  ],
  [
    transcriptionForm,
    [model, ['timestamp_granularities', 'word'], ['response_format', 'srt']],
    'timestamp_granularities',
    'is only for',
  ],
  [
    transcriptionForm,
    [model, ['timestamp_granularities[]', 'char'], ['response_format', 'verbose_json']],
    'timestamp_granularities[0]',
    'expected "word" or "segment"',
  ],
  [translationForm, [], 'model', "Missing required parameter 'model'"],
  [translationForm, [model, ['response_format', 'pdf']], 'response_format', 'expected "json"'],
  [translationForm, [model, ['temperature', 'hot']], 'temperature', 'expected a number'],
];

for (const [form, pairs, param, message] of refused) {
  test(`refused with its place: ${form === translationForm ? 'translation' : 'transcription'} ${pairs.join(' ')}`, async (t) => {
    try {
      read(form, ...pairs);
      t.fail('was taken');
    } catch (error) {
      t.match(error, { status: 400, param });
      t.ok((error as Error).message.includes(message), (error as Error).message);
    }
  });
}

test('without its file neither form is taken', async (t) => {
  for (const form of [transcriptionForm, translationForm]) {
    try {
      checkForm(form, [{ name: 'model', value: 'm' }], []);
      t.fail('was taken');
    } catch (error) {
      t.match(error, { kind: 'missing_parameter', param: 'file' });
    }
  }
});
