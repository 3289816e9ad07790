import { createHash } from 'node:crypto';
import { countTokens, words } from '../answer/tokens.js';
import { type PromptWishes, promptWishes } from '../faults/directives.js';
import { bodyReply, type Reply, type Route, type Step, streamReply } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { type RouteRequest, routes } from '../http/route.js';
import { describeAudio } from '../media/audio-text.js';
import { eventFormat, typedEvent } from '../media/route.js';
import { type Fields, type FormFile, oneFile, readFields } from '../openai/form.js';
import { openaiFormat } from '../openai/format.js';
import { flag, invalid, missing, modelOf, numberWithin, oneOf, textOrNull } from '../openai/values.js';

/** Audio containers by file extension, which is how the real endpoint identifies them. */
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

/** The task for the audio. */
type TranscriptTask = 'transcribe' | 'translate';

/** A request for the text of an audio file. */
interface TranscriptRequest {
  readonly task: TranscriptTask;
  readonly file: FormFile;
  readonly wishes: PromptWishes;
  readonly format: (typeof formats)[number];
  readonly temperature: number;
  /** English name of the language. */
  readonly language: string;
  readonly words: boolean;
  readonly segments: boolean;
  readonly logprobs: boolean;
  readonly stream: boolean;
}

/**
 * Reads and checks a form with an audio file.
 * @throws RequestError with what a caller did wrong.
 */
async function readTranscriptRequest(asked: RouteRequest, task: TranscriptTask): Promise<TranscriptRequest> {
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
    throw new RequestError(
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
    throw new RequestError(
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
  if (file === null) throw missing('file');
  if (!containers.includes(/\.(\w+)$/.exec(file.name)?.[1]?.toLowerCase() ?? '')) {
    throw new RequestError(
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
    throw new RequestError(
      400,
      `Invalid language '${code}'. Language parameter must be specified in ISO-639-1 format.`,
      'language',
      'invalid_language_format',
    );
  }
  return code === null ? 'english' : (languages[code] ?? code);
}

const longestSegment = 12;
/** Seconds of audio that the model processes at a time. */
const window = 30;

/** A word of a transcript; times in seconds. */
interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** A segment of a transcript; times in seconds. */
interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The words of a text, spread over a duration by their lengths. */
function spreadWords(text: string, seconds: number): Word[] {
  const found = words(text);
  const length = Math.max(1, text.length);
  let before = 0;
  return found.map((piece) => {
    const start = before;
    before += piece.length;
    return {
      word: piece.trim(),
      start: rounded((start / length) * seconds),
      end: rounded((before / length) * seconds),
    };
  });
}

/** The sentences of a text, long ones split, spread over a duration. */
function spreadSegments(text: string, seconds: number): Segment[] {
  const segments: Segment[] = [];
  let open: Word[] = [];
  for (const word of spreadWords(text, seconds)) {
    open.push(word);
    if (open.length === longestSegment || /[.!?]$/.test(word.word)) {
      segments.push(segmentOf(open));
      open = [];
    }
  }
  return open.length === 0 ? segments : [...segments, segmentOf(open)];
}

function segmentOf(found: readonly Word[]): Segment {
  const text = found.map(({ word }) => word).join(' ');
  return { start: found[0]?.start ?? 0, end: found.at(-1)?.end ?? 0, text };
}

/** A segment in the form of `verbose_json`. */
function verboseSegment(segment: Segment, id: number, temperature: number): object {
  return {
    id,
    seek: Math.floor(segment.start / window) * window * 100,
    start: segment.start,
    end: segment.end,
    text: ` ${segment.text}`,
    tokens: words(segment.text).map(tokenOf),
    temperature,
    avg_logprob: -0.25,
    compression_ratio: 1.2,
    no_speech_prob: 0.01,
  };
}

function tokenOf(word: string): number {
  return createHash('sha256').update(word).digest().readUInt16BE(0) % 50_000;
}

/** Subtitles in SubRip format. */
function srt(segments: readonly Segment[]): string {
  return segments
    .map(
      ({ start, end, text }, index) =>
        `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${text}\n\n`,
    )
    .join('');
}

/** Subtitles in WebVTT. */
function vtt(segments: readonly Segment[]): string {
  const cues = segments.map(
    ({ start, end, text }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${text}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

function clock(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const fraction = String(ms % 1000).padStart(3, '0');
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}${point}${fraction}`;
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}

/** Assumed rate, that of compressed speech, for audio without a known duration. */
const bytesPerSecond = 16_000;
const audioTokensPerSecond = 10;

const transcriptFormat = eventFormat((text) => ({ type: 'transcript.text.delta', delta: text }));

/** `POST /v1/audio/transcriptions` and `POST /v1/audio/translations` */
export const transcriptRoutes = [
  ...routesOf('/v1/audio/transcriptions', 'transcribe'),
  ...routesOf('/v1/audio/translations', 'translate'),
];

function routesOf(path: string, task: TranscriptTask): Route[] {
  return routes({ path, answer: (asked) => answer(asked, task) });
}

interface Transcript {
  readonly text: string;
  readonly seconds: number;
}

async function answer(asked: RouteRequest, task: TranscriptTask): Promise<Reply> {
  const wanted = await readTranscriptRequest(asked, task);
  const transcript = transcriptOf(wanted);
  const directives = [...asked.directives, ...wanted.wishes.faults];
  if (wanted.stream) {
    return streamReply({ events: events(wanted, transcript), answerFormat: transcriptFormat, directives });
  }
  const [type, body] = written(wanted, transcript);
  return bodyReply({
    status: 200,
    body,
    answerFormat: openaiFormat,
    headers: { 'content-type': type },
    directives,
  });
}

function transcriptOf({ file, task }: TranscriptRequest): Transcript {
  const heard = describeAudio(file.bytes);
  const seconds = heard.seconds ?? file.bytes.length / bytesPerSecond;
  const from = `${file.name} (${file.bytes.length} bytes)`;
  if (task === 'translate') {
    return { text: `Simulated translation of ${heard.text === null ? from : `"${heard.text}"`}.`, seconds };
  }
  return { text: heard.text ?? `Simulated transcription of ${from}.`, seconds };
}

function written(wanted: TranscriptRequest, { text, seconds }: Transcript): [type: string, body: string] {
  switch (wanted.format) {
    case 'text':
      return ['text/plain; charset=utf-8', `${text}\n`];
    case 'srt':
      return ['text/plain; charset=utf-8', srt(spreadSegments(text, seconds))];
    case 'vtt':
      return ['text/vtt; charset=utf-8', vtt(spreadSegments(text, seconds))];
    case 'json':
      return [
        'application/json',
        JSON.stringify({
          text,
          ...(wanted.logprobs ? { logprobs: logprobsOf(text) } : {}),
          usage: { type: 'duration', seconds: Math.ceil(seconds) },
        }),
      ];
    case 'verbose_json':
      return ['application/json', JSON.stringify(verbose(wanted, { text, seconds }))];
  }
}

function verbose(wanted: TranscriptRequest, { text, seconds }: Transcript): object {
  const segments = (): object[] =>
    spreadSegments(text, seconds).map((segment, id) => verboseSegment(segment, id, wanted.temperature));
  return {
    task: wanted.task,
    language: wanted.language,
    duration: seconds,
    text,
    ...(wanted.segments ? { segments: segments() } : {}),
    ...(wanted.words ? { words: spreadWords(text, seconds) } : {}),
    usage: { type: 'duration', seconds: Math.ceil(seconds) },
  };
}

function* events(wanted: TranscriptRequest, { text, seconds }: Transcript): Generator<Step> {
  for (const delta of words(text)) {
    const logprobs = wanted.logprobs ? { logprobs: logprobsOf(delta) } : {};
    const bytes = typedEvent({ type: 'transcript.text.delta', delta, ...logprobs });
    yield { kind: 'data', bytes, tokens: countTokens(delta) };
  }
  const textTokens = countTokens(wanted.wishes.rest);
  const audioTokens = Math.ceil(seconds * audioTokensPerSecond);
  const outputTokens = countTokens(text);
  const done = {
    type: 'transcript.text.done',
    text,
    ...(wanted.logprobs ? { logprobs: logprobsOf(text) } : {}),
    usage: {
      type: 'tokens',
      input_tokens: textTokens + audioTokens,
      input_token_details: { text_tokens: textTokens, audio_tokens: audioTokens },
      output_tokens: outputTokens,
      total_tokens: textTokens + audioTokens + outputTokens,
    },
  };
  yield { kind: 'data', bytes: typedEvent(done), tokens: 0 };
}

function logprobsOf(text: string): object[] {
  return words(text).map((token) => ({ token, logprob: -0.1, bytes: [...Buffer.from(token)] }));
}
