import { type Metering, reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never } from '../once.js';
import type { Endpoint } from '../protocol.js';
import { speechSeconds, transcriptSeconds } from './seconds.js';
import { judgeEnd, judgeStart, marks, marksEnd } from './stream-rules.js';
import { audioUsage } from './usage.js';

const audio = {
  protocol: 'audio',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  answersJson: false,
  translation: null,
  amender: null,
  once: never,
} as const;

const ofTranscripts: Metering = { ...reportedMetering, seconds: transcriptSeconds };
const ofSpeech: Metering = { ...reportedMetering, seconds: speechSeconds };

/** Endpoints whose upstreams decide whether they stream: some models ignore that they were asked to. */
const streaming = {
  ...audio,
  mayStream: true,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: audioUsage,
} as const;

/** `POST /v1/audio/transcriptions` */
export const transcriptions: Endpoint = {
  ...streaming,
  metering: ofTranscripts,
  upstreamPath: () => '/audio/transcriptions',
};

/** `POST /v1/audio/translations` */
export const translations: Endpoint = {
  ...audio,
  ...wholeAnswers(audioUsage, ofTranscripts),
  marks,
  mayStream: false,
  upstreamPath: () => '/audio/translations',
};

/** `POST /v1/audio/speech` */
export const speech: Endpoint = {
  ...streaming,
  metering: ofSpeech,
  upstreamPath: () => '/audio/speech',
};
