import { type Fields, type FormFile, oneFile, readFields } from './form.js';
import { invalid, modelOf } from './json-request.js';
import type { MediaRequest } from './media-route.js';
import { OpenAiError } from './openai-error.js';
import { flag, numberWithin, oneOf, textOrNull } from './openai-values.js';
import { type PromptWishes, promptWishes } from './prompt-wishes.js';

/** By the ending of their names, as the real one tells them apart. */
const containers = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'];
const formats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
const granularities = ['word', 'segment'];
const languages: Readonly<Record<string, string>> = {
  en: 'english',
  de: 'german',
  fr: 'french',
  es: 'spanish',
  it: 'italian',
  ja: 'japanese',
  zh: 'chinese',
};

/** What is to be done with the audio. */
export type TranscriptTask = 'transcribe' | 'translate';

/** A request for the text of an audio file. */
export interface TranscriptRequest {
  readonly task: TranscriptTask;
  readonly file: FormFile;
  readonly wishes: PromptWishes;
  readonly format: (typeof formats)[number];
  readonly temperature: number;
  /** In English words. */
  readonly language: string;
  readonly words: boolean;
  readonly segments: boolean;
  readonly logprobs: boolean;
  readonly stream: boolean;
}

/**
 * Reads and checks a form with an audio file.
 * @throws OpenAiError with what a caller did wrong.
 */
export async function readTranscriptRequest(
  asked: MediaRequest,
  task: TranscriptTask,
): Promise<TranscriptRequest> {
  const fields = await readFields(asked, ['form'], {
    numbers: ['temperature'],
    booleans: ['stream'],
    lists: ['timestamp_granularities', 'include'],
  });
  const { body } = fields;
  modelOf(body, 'sim-transcribe', false);
  const file = readFile(fields);
  const format = oneOf(body, 'response_format', ['json', ...formats.slice(1)]);
  const shared = {
    task,
    file,
    wishes: promptWishes(textOrNull(body, 'prompt') ?? ''),
    format,
    temperature: numberWithin(body, 'temperature', 0, 1) ?? 0,
  };
  if (task === 'translate') {
    return { ...shared, language: 'english', words: false, segments: true, logprobs: false, stream: false };
  }
  const wanted = listOf(fields, 'timestamp_granularities', granularities);
  if (wanted.length > 0 && format !== 'verbose_json') {
    throw new OpenAiError(
      400,
      "'timestamp_granularities' can only be used with response_format 'verbose_json'.",
      'timestamp_granularities',
      'invalid_value',
    );
  }
  const logprobs = listOf(fields, 'include', ['logprobs']).length > 0;
  const stream = flag(body, 'stream');
  if ((logprobs || stream) && format !== 'json') {
    const param = logprobs ? 'include' : 'stream';
    throw new OpenAiError(
      400,
      `'${param}' can only be used with response_format 'json'.`,
      param,
      'unsupported_value',
    );
  }
  return {
    ...shared,
    language: readLanguage(textOrNull(body, 'language')),
    words: wanted.includes('word'),
    segments: wanted.length === 0 || wanted.includes('segment'),
    logprobs,
    stream,
  };
}

function readFile(fields: Fields): FormFile {
  if ('file' in fields.body) {
    throw invalid('file', 'a file, with a name');
  }
  const file = oneFile(fields, 'file');
  if (file === null) {
    throw new OpenAiError(400, "Missing required parameter: 'file'.", 'file', 'missing_required_parameter');
  }
  if (!containers.includes(/\.(\w+)$/.exec(file.name)?.[1]?.toLowerCase() ?? '')) {
    throw new OpenAiError(
      400,
      `Unrecognized file format. Supported formats: ${JSON.stringify(containers)}`,
      'file',
      'unsupported_format',
    );
  }
  return file;
}

function listOf({ body }: Fields, name: string, known: readonly string[]): readonly string[] {
  const list = (body[name] ?? []) as readonly string[];
  const unknown = list.find((one) => !known.includes(one));
  if (unknown !== undefined) {
    throw invalid(name, `some of ${known.join(', ')}`);
  }
  return list;
}

function readLanguage(code: string | null): string {
  if (code !== null && !/^[a-z]{2}$/.test(code)) {
    throw new OpenAiError(
      400,
      `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`,
      'language',
      'invalid_language_format',
    );
  }
  return code === null ? 'english' : (languages[code] ?? code);
}
