import { spreadSegments, spreadWords, srt, verboseSegment, vtt } from './audio-formats.js';
import {
  readTranscriptRequest,
  type TranscriptRequest,
  type TranscriptTask,
} from './audio-transcripts-request.js';
import { chatManner } from './chat.js';
import { describeAudio } from './media/audio-text.js';
import { eventManner, typedEvent } from './media-manner.js';
import { type MediaRequest, mediaRoutes } from './media-route.js';
import { bodyReply, type Reply, type Step, streamReply } from './reply.js';
import { countTokens, words } from './tokens.js';

/** Of audio that does not tell how long it is: what compressed speech takes. */
const bytesPerSecond = 16_000;
const audioTokensPerSecond = 10;

const transcriptManner = eventManner((text) => ({ type: 'transcript.text.delta', delta: text }));

/** `POST /v1/audio/transcriptions` and `POST /v1/audio/translations` */
export const transcriptRoutes = [
  ...routesOf('/v1/audio/transcriptions', 'transcribe'),
  ...routesOf('/v1/audio/translations', 'translate'),
];

function routesOf(path: string, task: TranscriptTask): ReturnType<typeof mediaRoutes> {
  return mediaRoutes({
    methods: ['POST'],
    path,
    manner: () => chatManner,
    answer: (asked) => answer(asked, task),
  });
}

interface Transcript {
  readonly text: string;
  readonly seconds: number;
}

async function answer(asked: MediaRequest, task: TranscriptTask): Promise<Reply> {
  const wanted = await readTranscriptRequest(asked, task);
  const transcript = transcriptOf(wanted);
  const directives = [...asked.directives, ...wanted.wishes.faults];
  if (wanted.stream) {
    return streamReply({ events: events(wanted, transcript), manner: transcriptManner, directives });
  }
  const [type, body] = written(wanted, transcript);
  return bodyReply({ status: 200, body, manner: chatManner, headers: { 'content-type': type }, directives });
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
