import { countTokens } from '../answer/tokens.js';
import { promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import { bodyReply, type Reply, type Step, streamReply } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { type RouteRequest, routes } from '../http/route.js';
import { binaryFormat, eventFormat, typedEvent } from '../media/route.js';
import { speech } from '../media/speech.js';
import { readFields } from '../openai/form.js';
import {
  invalid,
  modelOf,
  numberWithin,
  oneOf,
  required,
  requiredText,
  textOrNull,
} from '../openai/values.js';

const maxCharacters = 4096;
const eventBytes = 16 * 1024;
const contentTypes = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  flac: 'audio/flac',
} as const;
type Format = keyof typeof contentTypes;

const voices = [
  'alloy',
  'ash',
  'ballad',
  'coral',
  'echo',
  'fable',
  'onyx',
  'nova',
  'sage',
  'shimmer',
  'verse',
  'marin',
  'cedar',
];

const speechFormat = eventFormat((text) => ({
  type: 'speech.audio.delta',
  audio: Buffer.from(text).toString('base64'),
}));

/** `POST /v1/audio/speech` */
export const speechRoutes = routes({
  path: '/v1/audio/speech',
  answer: speak,
});

async function speak(asked: RouteRequest): Promise<Reply> {
  const { body } = await readFields(asked, ['json']);
  modelOf(body, 'sim-speech', false);
  const wishes = promptWishes(requiredText(body, 'input', maxCharacters));
  const voice = readVoice(body);
  textOrNull(body, 'instructions');
  const format = readFormat(body);
  const speed = numberWithin(body, 'speed', 0.25, 4) ?? 1;
  const asEvents = oneOf(body, 'stream_format', ['audio', 'sse']) === 'sse';
  const directives = [...asked.directives, ...wishes.faults];
  const pieces = speech({ text: wishes.rest, voice, format, speed });
  if (asEvents) {
    return streamReply({ events: events(pieces, wishes.rest), answerFormat: speechFormat, directives });
  }
  return {
    ...bodyReply({
      status: 200,
      body: '',
      answerFormat: binaryFormat,
      headers: { 'content-type': contentTypes[format] },
      directives,
    }),
    length: null,
    stream: true,
    steps: plain(pieces),
  };
}

function* plain(pieces: Iterable<Buffer>): Generator<Step> {
  for (const bytes of pieces) {
    yield { kind: 'data', bytes, tokens: 0 };
  }
}

function* events(pieces: Iterable<Buffer>, text: string): Generator<Step> {
  let bytes = 0;
  for (const piece of pieces) {
    bytes += piece.length;
    for (let at = 0; at < piece.length; at += eventBytes) {
      const audio = piece.subarray(at, at + eventBytes).toString('base64');
      yield { kind: 'data', bytes: typedEvent({ type: 'speech.audio.delta', audio }), tokens: 0 };
    }
  }
  const inputTokens = countTokens(text);
  const outputTokens = Math.ceil(bytes / 1000);
  const usage = {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  yield { kind: 'data', bytes: typedEvent({ type: 'speech.audio.done', usage }), tokens: 0 };
}

function readVoice(body: JsonObject): string {
  const voice = required(body, 'voice');
  if (isObject(voice) && typeof voice.id === 'string' && voice.id !== '') {
    return voice.id;
  }
  if (typeof voice !== 'string' || !voices.includes(voice)) {
    throw invalid('voice', `one of ${voices.join(', ')}, or an object with an id`);
  }
  return voice;
}

function readFormat(body: JsonObject): Format {
  const format = oneOf(body, 'response_format', ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm']);
  if (format === 'opus' || format === 'aac') {
    throw new RequestError(
      400,
      `The simulator has no encoder for '${format}'. It can give ${Object.keys(contentTypes).join(', ')}.`,
      'response_format',
      'unsupported_value',
    );
  }
  return format;
}
