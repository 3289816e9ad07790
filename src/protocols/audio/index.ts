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
import { parseObject, textOrNull } from '../../wire/json.js';
import { standsAt } from '../../wire/json-skip.js';
import { eventStart, finalEvents, parseEvent } from '../../wire/sse.js';
import { noEffects } from '../effects.js';
import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { upstreamError } from '../error-formats/upstream-error.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';

/**
 * Finds the last `usage` in the bytes of a transcript or in the end of its stream; one that counts seconds in place of
 * tokens is none.
 */
const { lastUsage: transcriptUsage } = createUsageReader(tokenNames);
/** The same of speech, whose output is sound. */
const { lastUsage: speechUsage } = createUsageReader(tokenNames, 'audio');

/*
 * The streams of transcriptions and of speech: events of a `type` in their data, and in their name from some upstreams.
 */

/** The last event of a stream, by its type. */
const doneTypes: readonly string[] = ['transcript.text.done', 'speech.audio.done'];
/** One of these is in an event that may be the last: a text in quotes cannot stand inside another one. */
const lastTypes = [...doneTypes, 'error'];
const lastWords = lastTypes.map((type) => Buffer.from(`"${type}"`));
/** An event's name, and the whole of a comment or of `[DONE]`, are within so many bytes. */
const headBytes = 128;
/** How a line of an event, or a comment, begins. */
const lineStart = /^\ufeff?(data|event|id|retry)?:/;

/** See `StreamRules.marks`; with that of a whole transcript. */
const marks = marksOf('"transcript.', '"speech.', '"text"');

/** Judges the first events of a stream; see `StreamRules.judgeStart`. */
const judgeStart = judgingEvents((event, data) => errorOf(event, data) ?? 'meaningful');

/** Whether a run of events ends with the stream's last one; see `StreamRules.marksEnd`. */
function marksEnd(run: Buffer): boolean {
  return lastWord(run) === 'done';
}

/** Judges the end of a stream, whose usage was read; see `StreamRules.judgeEnd`. */
function endingOf(tail: Buffer, facts: StreamFacts, usage: Usage | null): StreamEnding {
  const word = lastWord(tail);
  if (word instanceof GatewayError) return { state: 'failed', usage, error: word };
  // Only the last event has usage, and where it is large the tail has no more of it than its end.
  const isComplete = word === 'done' || facts.ended || (word === 'unknown' && usage !== null);
  return { state: isComplete ? 'complete' : 'incomplete', usage, error: null };
}

/** What the last event with data says; `unknown` where its begin is not there. */
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

/** The bytes of a sound are not parsed for it. */
function wordOf(found: Buffer, head: string): LastWord {
  const isNamed = head.startsWith('event:') && lastTypes.some((type) => head.includes(type));
  if (!isNamed && !lastWords.some((word) => found.includes(word))) return 'other';
  const { event, data } = parseEvent(found.toString('utf8'));
  const error = errorOf(event, data ?? '');
  if (error !== null) return error;
  const body = parseObject(data ?? '');
  return body !== null && doneTypes.includes(textOrNull(body.type) ?? event ?? '') ? 'done' : 'other';
}

/** True for a comment, for `[DONE]` and for nothing. */
function isEmpty(text: string): boolean {
  const { data } = parseEvent(text);
  return data === null || data === '' || data.trim() === '[DONE]';
}

/** The error that an event is, or null. */
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

const ofTranscripts: Metering = { ...reportedMetering, broken: 'text', seconds: transcriptSeconds };
const ofSpeech: Metering = { ...reportedMetering, broken: 'medium', seconds: speechSeconds };

/** Endpoints whose upstreams decide whether they stream: some models ignore that they were asked to. */
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
/** Of a file that has nothing but its format before the sound. */
const waveHeaderBytes = 44;

/**
 * Seconds of a sound: those of a WAV file, whose head says how many bytes a second has. Other formats say no such thing
 * where it could be read in passing.
 * @param begin its first bytes
 * @param length of the whole of it, which the head of a streamed file does not know
 */
function speechSeconds(begin: Buffer, length: number): number {
  if (begin.length < waveHeaderBytes || !standsAt(begin, riffAt, riff)) return 0;
  if (!standsAt(begin, waveAt, waveFormat)) return 0;
  const byteRate = begin.readUInt32LE(byteRateAt);
  return byteRate === 0 ? 0 : Math.max(0, length - waveHeaderBytes) / byteRate;
}

/** A quoted key cannot occur inside a JSON string, where its quotes would be escaped. */
const durationKey = Buffer.from('"duration"');
const usageKey = Buffer.from('"usage"');
const number = /^\s*:\s*"?(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/;
/** Mistral calls them seconds of the prompt (https://docs.mistral.ai/capabilities/audio). */
const secondsNumber = /^\s*:\s*\{[^{}]*"(?:prompt_audio_)?seconds"\s*:\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/;
/** A number, or a usage, with its name and the space around it. */
const valueBytes = 256;

/** How a transcript begins that is an object, or the events of a stream; any other is plain text, which names nothing. */
const namingStart = /^\ufeff?\s*(?:\{|(?:data|event|id|retry)?:)/;
const startBytes = 64;

/**
 * Seconds of the sound of which an answer is the transcript: as its `usage` counts them, or as its `duration`.
 * @param begin its first bytes
 * @param end its last bytes
 */
function transcriptSeconds(begin: Buffer, _length: number, end: Buffer): number {
  if (!namingStart.test(begin.toString('utf8', 0, startBytes))) return 0;
  return (
    numberAfter(end, end.lastIndexOf(usageKey), usageKey, secondsNumber) ??
    numberAfter(begin, begin.indexOf(durationKey), durationKey, number) ??
    0
  );
}

function numberAfter(bytes: Buffer, at: number, key: Buffer, form: RegExp): number | null {
  if (at === -1) return null;
  const from = at + key.length;
  const found = form.exec(bytes.toString('latin1', from, from + valueBytes));
  const value = found === null ? null : Number(found[1]);
  // More than any number can count is no length of a sound.
  return value !== null && value <= Number.MAX_SAFE_INTEGER ? value : null;
}
