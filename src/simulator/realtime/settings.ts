import type { Tool, ToolChoice } from '../answer/prompt.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { created } from '../openai/format.js';
import { invalid, numberWithin, refuseUnknown, required, textOrNull } from '../openai/values.js';
import { readToolChoice, readTools } from '../responses/tools.js';
import type { Dialect } from './dialect.js';

const maxOutputTokens = 4096;
const sessionSeconds = 1800;
const shared = 'instructions tools tool_choice prompt';
const sessionNames = {
  ga: namesIn(
    `${shared} type model output_modalities audio max_output_tokens tracing truncation include reasoning parallel_tool_calls`,
  ),
  beta: namesIn(
    `${shared} model modalities voice speed input_audio_format output_audio_format input_audio_transcription
    input_audio_noise_reduction turn_detection temperature max_response_output_tokens tracing include`,
  ),
};
const responseNames = {
  ga: namesIn(
    `${shared} output_modalities audio max_output_tokens conversation input metadata reasoning parallel_tool_calls`,
  ),
  beta: namesIn(
    `${shared} modalities voice output_audio_format temperature max_response_output_tokens max_output_tokens
    conversation input metadata`,
  ),
};

function namesIn(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/));
}

/** The settings of a turn: those of the session, overridden by those of the response. */
export interface TurnSettings {
  readonly speaks: boolean;
  readonly voice: string;
  readonly speed: number;
  readonly instructions: string;
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  readonly maxTokens: number;
  /** In the protocol's form, for the response object. */
  readonly modalities: unknown;
  readonly maxOutput: unknown;
  readonly temperature: unknown;
  readonly metadata: unknown;
}

/** The session object before a client has changed anything. */
export function newSession(dialect: Dialect, id: string, model: string): JsonObject {
  const head = { object: 'realtime.session', id, model };
  const both = { instructions: '', tools: [], tool_choice: 'auto' };
  if (dialect.isBeta) {
    return {
      ...head,
      modalities: ['text', 'audio'],
      voice: 'alloy',
      input_audio_format: 'pcm16',
      output_audio_format: 'pcm16',
      input_audio_transcription: null,
      turn_detection: null,
      ...both,
      temperature: 0.8,
      max_response_output_tokens: 'inf',
    };
  }
  const format = { type: 'audio/pcm', rate: 24_000 };
  return {
    type: 'realtime',
    ...head,
    output_modalities: ['audio'],
    audio: {
      input: { format, transcription: null, noise_reduction: null, turn_detection: null },
      output: { format, voice: 'alloy', speed: 1 },
    },
    ...both,
    max_output_tokens: 'inf',
    tracing: null,
    truncation: 'auto',
    prompt: null,
    expires_at: created + sessionSeconds,
    include: null,
  };
}

/**
 * The session object after a `session.update`.
 * @throws RequestError for an invalid update
 */
export function updatedSession(dialect: Dialect, session: JsonObject, update: unknown): JsonObject {
  return within('session', () => {
    if (!isObject(update)) {
      throw invalid('', 'an object');
    }
    if (!dialect.isBeta && required(update, 'type') !== 'realtime') {
      throw invalid('type', "'realtime'");
    }
    refuseUnknown(update, dialect.isBeta ? sessionNames.beta : sessionNames.ga);
    const next = merged(session, update);
    readSettings(dialect, next);
    return next;
  });
}

/**
 * The settings of a turn.
 * @param response the `response` of the `response.create`
 * @throws RequestError
 */
export function turnSettings(dialect: Dialect, session: JsonObject, response: JsonObject): TurnSettings {
  return within('response', () => {
    refuseUnknown(response, dialect.isBeta ? responseNames.beta : responseNames.ga);
    const { max_output_tokens: limit } = response;
    const spelled =
      dialect.isBeta && limit !== undefined ? { ...response, max_response_output_tokens: limit } : response;
    const { metadata = null } = response;
    return { ...readSettings(dialect, merged(session, spelled)), metadata };
  });
}

/** Whether the user's speech is transcribed. */
export function transcribes(dialect: Dialect, session: JsonObject): boolean {
  const asked = dialect.isBeta
    ? session.input_audio_transcription
    : objectIn(objectIn(session, 'audio'), 'input').transcription;
  return isObject(asked);
}

/** Runs a check, and prefixes the members in its errors with the name of their object. */
function within<Value>(place: string, check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof RequestError) || error.param === null) {
      throw error;
    }
    const param = error.param === '' ? place : `${place}.${error.param}`;
    const message = error.message.replace(`'${error.param}'`, `'${param}'`);
    throw new RequestError(error.status, message, param, error.code);
  }
}

/** Merges an update: the members of `audio` one by one, all others as a whole. */
function merged(before: JsonObject, update: JsonObject): JsonObject {
  if (update.audio === undefined) {
    return { ...before, ...update };
  }
  if (!isObject(update.audio)) {
    throw invalid('audio', 'an object');
  }
  const old = objectIn(before, 'audio');
  const sides = Object.fromEntries(
    ['input', 'output'].map((side) => [side, { ...objectIn(old, side), ...objectIn(update.audio, side) }]),
  );
  return { ...before, ...update, audio: sides };
}

function objectIn(value: unknown, name: string): JsonObject {
  const found = isObject(value) ? value[name] : undefined;
  return isObject(found) ? found : {};
}

function readSettings(dialect: Dialect, from: JsonObject): TurnSettings {
  const { isBeta, modalities } = dialect;
  const limitName = isBeta ? 'max_response_output_tokens' : 'max_output_tokens';
  const limit = from[limitName] ?? 'inf';
  if (
    limit !== 'inf' &&
    !(Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= maxOutputTokens)
  ) {
    throw invalid(limitName, `an integer from 1 to ${maxOutputTokens} or 'inf'`);
  }
  const output = isBeta ? from : objectIn(from.audio, 'output');
  checkFormats(isBeta, from);
  const tools = readTools(from.tools);
  const { choice, allowed } = readToolChoice(from.tool_choice, tools);
  return {
    speaks: readModalities(isBeta, modalities, from[modalities]),
    voice: typeof output.voice === 'string' ? output.voice : 'alloy',
    speed: numberWithin(output, 'speed', 0.25, 1.5) ?? 1,
    instructions: textOrNull(from, 'instructions') ?? '',
    tools: allowed,
    toolChoice: choice,
    maxTokens: limit === 'inf' ? Infinity : Number(limit),
    modalities: from[modalities],
    maxOutput: limit,
    temperature: numberWithin(from, 'temperature', 0.6, 1.2),
    metadata: null,
  };
}

/** Whether the answer is spoken. */
function readModalities(isBeta: boolean, name: string, value: unknown): boolean {
  const given = Array.isArray(value) ? [...value].sort().join('+') : '';
  const spoken = isBeta ? 'audio+text' : 'audio';
  if (given !== 'text' && given !== spoken) {
    throw invalid(name, isBeta ? "['text'] or ['text', 'audio']" : "['text'] or ['audio']");
  }
  return given === spoken;
}

/** Refuses formats other than 16-bit samples, the only ones of the simulator. */
function checkFormats(isBeta: boolean, from: JsonObject): void {
  const formats = isBeta
    ? (['input_audio_format', 'output_audio_format'] as const).map(
        (name) => [name, from[name], 'pcm16'] as const,
      )
    : (['input', 'output'] as const).map((side) => {
        const { type } = objectIn(objectIn(from.audio, side), 'format');
        return [`audio.${side}.format.type`, type, 'audio/pcm'] as const;
      });
  for (const [name, given, only] of formats) {
    if (given !== undefined && given !== only) {
      throw new RequestError(400, `The simulator has no codec but '${only}'.`, name, 'unsupported_value');
    }
  }
}
