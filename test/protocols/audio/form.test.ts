import { test } from 'tap';
import { transcriptionForm, translationForm } from '../../../src/protocols/audio/index.js';
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
      temperature: '0.2',
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

test('words and ranges of the fields are left to the upstream', async (t) => {
  for (const form of [transcriptionForm, translationForm])
    t.match(read(form, model, ['response_format', 'diarized_json'], ['temperature', '2']), {
      response_format: 'diarized_json',
      temperature: '2',
    });
  t.match(read(transcriptionForm, model, ['timestamp_granularities[]', 'char']), {
    timestamp_granularities: ['char'],
  });
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
  [translationForm, [], 'model', "Missing required parameter 'model'"],
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
