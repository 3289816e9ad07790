import { Type } from 'typebox';
import {
  judgingEvents,
  type Metering,
  marksOf,
  reportedMetering,
  type StreamEnding,
  type StreamFacts,
  wholeAnswers,
} from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { compileForm } from '../../schema/form.js';
import { bodies, given, name, nullable, text } from '../../schema/members.js';
import { OPEN_BRACE } from '../../wire/bytes.js';
import { objectAt, parseObject, textOrNull } from '../../wire/json.js';
import { lastMemberAt, lastObjectStart, standsAt } from '../../wire/json-skip.js';
import { eventStart, finalEvents, parseEvent } from '../../wire/sse.js';
import { noEffects } from '../effects.js';
import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { upstreamError } from '../error-formats/upstream-error.js';
import { createUsageReader, secondsOfUsage, tokenNames } from '../openai-shared/usage.js';

const { lastUsage: usageOfTokens } = createUsageReader(tokenNames);
/** Mistral's has the names of chat (https://docs.mistral.ai/capabilities/audio). */
const { lastUsage: usageOfOlderNames } = createUsageReader();

/**
 * Finds the last `usage` in the bytes of a transcript or in the end of its stream. One that counts seconds instead of
 * tokens is ignored.
 */
function transcriptUsage(bytes: Buffer): Usage | null {
  return usageOfOlderNames(bytes) ?? usageOfTokens(bytes);
}

/** The same for speech, whose output is audio. */
const { lastUsage: speechUsage } = createUsageReader(tokenNames, 'audio');

/*
 * Streams of transcriptions and of speech. The type of an event is in its data, and from some upstreams in its name.
 */

/** Types of the last event of a stream: OpenAI's, and that of Mistral's transcripts. */
const doneTypes: readonly string[] = ['transcript.text.done', 'speech.audio.done', 'transcription.done'];
/** An event that may be the last contains one of these. A string cannot contain the quotes. */
const lastTypes = [...doneTypes, 'error'];
const lastWords = lastTypes.map((type) => Buffer.from(`"${type}"`));
/** Number of bytes that contain an event's name, or the whole of a comment or of `[DONE]`. */
const headBytes = 128;
/** Beginning of a line of an event, or of a comment. */
const lineStart = /^\ufeff?(data|event|id|retry)?:/;

/** See `StreamRules.marks`. Includes that of a whole transcript. */
const marks = marksOf('"transcript.', '"transcription.', '"speech.', '"text"');

/** Judges the first events of a stream; see `StreamRules.judgeStart`. */
const judgeStart = judgingEvents((event, data) => errorOf(event, data) ?? 'meaningful');

/** Returns whether a run of events ends with the stream's last one; see `StreamRules.marksEnd`. */
function marksEnd(run: Buffer): boolean {
  return lastWord(run) === 'done';
}

/** Judges the end of a stream with its usage; see `StreamRules.judgeEnd`. */
function endingOf(tail: Buffer, facts: StreamFacts, usage: Usage | null): StreamEnding {
  const word = lastWord(tail);
  if (word instanceof GatewayError) return { state: 'failed', usage, error: word };
  // Only the last event has usage. If it is large, the tail contains only its end.
  const isComplete = word === 'done' || facts.ended || (word === 'unknown' && usage !== null);
  return { state: isComplete ? 'complete' : 'incomplete', usage, error: null };
}

/** State according to the last event with data. `unknown` if its beginning is missing. */
type LastWord = 'done' | 'unknown' | 'other' | GatewayError;

function lastWord(bytes: Buffer): LastWord {
  for (let end = bytes.length, looked = 0; end > 0 && looked < finalEvents; looked++) {
    const start = eventStart(bytes, end);
    const head = bytes.toString('utf8', start, Math.min(end, start + headBytes));
    if (start === 0 && !lineStart.test(head)) return 'unknown';
    if (end - start > headBytes || !isEmpty(head)) return wordOf(bytes.subarray(start, end), head);
    end = start;
  }
  return 'other';
}

/** Audio data is not parsed for this. */
function wordOf(found: Buffer, head: string): LastWord {
  const isNamed = head.startsWith('event:') && lastTypes.some((type) => head.includes(type));
  if (!isNamed && !lastWords.some((word) => found.includes(word))) return 'other';
  const { event, data } = parseEvent(found.toString('utf8'));
  const error = errorOf(event, data ?? '');
  if (error !== null) return error;
  const body = parseObject(data ?? '');
  return body !== null && doneTypes.includes(textOrNull(body.type) ?? event ?? '') ? 'done' : 'other';
}

/** Returns whether a text is a comment, `[DONE]` or empty. */
function isEmpty(text: string): boolean {
  const { data } = parseEvent(text);
  return data === null || data === '' || data.trim() === '[DONE]';
}

function errorOf(event: string | null, data: string): GatewayError | null {
  const body = parseObject(data);
  if (body === null) return event === 'error' ? new GatewayError('upstream_error', data || null) : null;
  const error = upstreamError(body.error);
  if (error !== null) return error;
  if (event !== 'error' && body.type !== 'error') return null;
  return upstreamError(body);
}

const audio = {
  ...plainEndpoint,
  protocol: 'audio',
  answersJson: false,
  hasEffects: noEffects,
} as const;

const ofTranscripts: Metering = { ...reportedMetering, unreported: 'transcript', seconds: transcriptSeconds };
const ofSpeech: Metering = { ...reportedMetering, unreported: 'sound', seconds: speechSeconds };

/** Endpoints whose upstreams decide whether they stream: some models ignore the client's setting. */
const streaming = {
  ...audio,
  streamsUnasked: true,
  marks,
  judgeStart,
  marksEnd,
} as const;

/** `POST /v1/audio/transcriptions` */
export const transcriptions: Endpoint = {
  ...streaming,
  judgeEnd: (tail, facts) => endingOf(tail, facts, transcriptUsage(tail)),
  usageOf: transcriptUsage,
  metering: ofTranscripts,
  upstreamPath: () => '/audio/transcriptions',
};

/** `POST /v1/audio/translations` */
export const translations: Endpoint = {
  ...audio,
  ...wholeAnswers(transcriptUsage, ofTranscripts, judgeStart),
  marks,
  upstreamPath: () => '/audio/translations',
};

/** `POST /v1/audio/speech` */
export const speech: Endpoint = {
  ...streaming,
  judgeEnd: (tail, facts) => endingOf(tail, facts, speechUsage(tail)),
  usageOf: speechUsage,
  metering: ofSpeech,
  upstreamPath: () => '/audio/speech',
};

const riff = Buffer.from('RIFF');
const waveFormat = Buffer.from('WAVEfmt ');
const riffAt = 0;
const waveAt = 8;
const byteRateAt = 28;
/** Size of the header of a file with only its format before the audio. */
const waveHeaderBytes = 44;

/**
 * Returns the seconds of audio in a WAV file, whose header has the bytes per second. Other formats have no such number
 * that could be read in passing.
 * @param begin first bytes of the file
 * @param length bytes of the whole file, which the header of a streamed file does not contain
 */
function speechSeconds(begin: Buffer, length: number): number {
  if (begin.length < waveHeaderBytes || !standsAt(begin, riffAt, riff)) return 0;
  if (!standsAt(begin, waveAt, waveFormat)) return 0;
  const byteRate = begin.readUInt32LE(byteRateAt);
  return byteRate === 0 ? 0 : Math.max(0, length - waveHeaderBytes) / byteRate;
}

/** A quoted key cannot occur within a JSON string, where its quotes would be escaped. */
const durationKey = Buffer.from('"duration"');
const usageKey = Buffer.from('"usage"');
const number = /^\s*:\s*"?(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/;
/** Maximum number of bytes of a number, with white space. */
const valueBytes = 256;

/** Beginning of a transcript that is an object or a stream of events. Any other is plain text without metadata. */
const namingStart = /^\ufeff?\s*(?:\{|(?:data|event|id|retry)?:)/;
const startBytes = 64;

/**
 * Returns the seconds of the transcribed audio, from `usage` or `duration` of the answer.
 * @param begin first bytes of the answer
 * @param end last bytes of the answer
 */
function transcriptSeconds(begin: Buffer, _length: number, end: Buffer): number {
  if (!namingStart.test(begin.toString('utf8', 0, startBytes))) return 0;
  return secondsOfUsage(objectAt(end, lastObjectStart(end, usageKey))) || durationIn(begin, end);
}

/** Words and segments may have a duration of their own, which is nested deeper than that of the answer. */
function durationIn(begin: Buffer, end: Buffer): number {
  const last = lastMemberAt(end, durationKey, 1);
  const [bytes, at] = last === -1 ? [begin, begin.indexOf(durationKey)] : [end, last];
  if (at === -1 || (last === -1 && begin.lastIndexOf(OPEN_BRACE, at) !== begin.indexOf(OPEN_BRACE))) return 0;
  const from = at + durationKey.length;
  const found = number.exec(bytes.toString('latin1', from, from + valueBytes));
  const value = found === null ? 0 : Number(found[1]);
  // Larger numbers cannot be the length of audio.
  return value <= Number.MAX_SAFE_INTEGER ? value : 0;
}

/** Body of `POST /v1/audio/speech`. */
export const speechRequestType = Type.Object({
  model: name,
  input: name,
  voice: Type.Union([name, Type.Object({ id: name })]),
  instructions: text,
  response_format: nullable(Type.Enum(['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'])),
  speed: nullable(Type.Number({ minimum: 0.25, maximum: 4 })),
  stream_format: nullable(Type.Enum(['audio', 'sse'])),
});

/** Bodies of other endpoints, recognized by the member with their input. */
const speechMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.chat, bodies.completions],
};

/** Checks a speech request body, which is passed on unchanged. */
export const speechRequest = compileSchema(Type.Object({ model: name, input: given }), speechMixedBody, {
  reads: Object.keys(speechRequestType.properties),
});

const field = Type.Optional(Type.String());
const fields = Type.Optional(Type.Array(Type.String()));

/*
 * The upstream judges words and ranges.
 */

const members = {
  model: name,
  prompt: field,
  response_format: field,
  temperature: field,
};

/** Form of `POST /v1/audio/transcriptions`. */
export const transcriptionForm = compileForm({
  files: ['file'],
  fields: Type.Object({
    ...members,
    language: field,
    timestamp_granularities: fields,
    stream: Type.Optional(Type.Boolean()),
    include: fields,
    languages: fields,
    keywords: fields,
    // `auto`, the JSON text of an object, or `chunking_strategy[type]` and so on.
    chunking_strategy: field,
  }),
  split: ['chunking_strategy'],
});

/** Form of `POST /v1/audio/translations`. */
export const translationForm = compileForm({
  files: ['file'],
  fields: Type.Object(members),
});
