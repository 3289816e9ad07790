import type { Answer, ToolCall } from '../answer/prompt.js';
import { countTokens, inTurns, pieces, words } from '../answer/tokens.js';
import { speech } from '../media/speech.js';
import type { Dialect } from './dialect.js';
import { type Item, msOf } from './items.js';
import type { InputTokens } from './prompt.js';
import type { TurnSettings } from './settings.js';

const msPerToken = 50;
const maxRequests = 1000;
const maxTokens = 1_000_000;

/** The members of a response object that change while it is generated. */
interface Standing {
  readonly status: string;
  readonly details: object | null;
  readonly output: readonly object[];
  readonly usage: object | null;
}

/** A response that was just started. */
export const inProgress: Standing = { status: 'in_progress', details: null, output: [], usage: null };

/** The error of a failed response. */
export const failure = {
  type: 'server_error',
  code: 'server_error',
  message: 'The simulator was asked for an error in the stream.',
};

/** The object of a response. */
export function responseObject(turn: Turn, { status, details, output, usage }: Standing): object {
  const { settings, dialect } = turn;
  const { voice, modalities, maxOutput, temperature, metadata } = settings;
  const format = { type: 'audio/pcm', rate: 24_000 };
  return {
    id: turn.id,
    object: 'realtime.response',
    status,
    status_details: details,
    output,
    conversation_id: turn.conversationId,
    [dialect.modalities]: modalities,
    max_output_tokens: maxOutput,
    ...(dialect.isBeta
      ? { voice, output_audio_format: 'pcm16', temperature }
      : { audio: { output: { format, voice } } }),
    usage,
    metadata,
  };
}

/** The `usage` of a response with all its details. */
function turnUsage(input: InputTokens, output: { readonly text: number; readonly audioMs: number }) {
  const audio = Math.ceil(output.audioMs / msPerToken);
  const inputTokens = input.text + input.audio + input.image;
  const outputTokens = output.text + audio;
  return {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      text_tokens: input.text,
      audio_tokens: input.audio,
      image_tokens: input.image,
      cached_tokens: 0,
      cached_tokens_details: { text_tokens: 0, audio_tokens: 0, image_tokens: 0 },
    },
    output_token_details: { text_tokens: output.text, audio_tokens: audio },
  };
}

/** The remaining limits after this many responses, with the tokens of the last one. */
function rateLimits(responses: number, tokens: number): readonly object[] {
  const limit = (name: string, most: number, taken: number): object => ({
    name,
    limit: most,
    remaining: Math.max(0, most - taken),
    reset_seconds: Math.round((taken / most) * 60_000) / 1000,
  });
  return [limit('requests', maxRequests, responses), limit('tokens', maxTokens, tokens)];
}

const argumentsPiece = 12;

/** A response being generated. */
export interface Turn {
  readonly id: string;
  /** Number of the response in the session, from 1. */
  readonly number: number;
  readonly dialect: Dialect;
  readonly settings: TurnSettings;
  readonly answer: Answer;
  readonly input: InputTokens;
  /** Null for a response outside the conversation. */
  readonly conversationId: string | null;
  newItemId(): string;
  /**
   * Adds an item to the conversation, or replaces its earlier state.
   * @returns the id of the item before it
   */
  keep(item: Item): string | null;
  /** Set from outside to end the response as soon as possible. */
  cancelled: boolean;
}

/** An event before it has its id. */
interface TurnEvent {
  readonly type: string;
  readonly members: object;
  /** Tokens that count toward the token rate. */
  readonly tokens: number;
}

/** The part of an answer sent so far. */
interface Said {
  text: string;
  audioBytes: number;
}

/** The events of a response, generated on demand; a cancelled response ends regularly. */
export function* turnEvents(turn: Turn): Generator<TurnEvent> {
  const { answer } = turn;
  yield event('response.created', { response: responseObject(turn, inProgress) });
  const output: object[] = [];
  const spoken: Said = { text: '', audioBytes: 0 };
  let written = 0;
  if (answer.calls.length === 0) {
    yield* messageEvents(turn, spoken, output);
    written = countTokens(spoken.text);
  }
  for (const call of answer.calls) {
    if (turn.cancelled) {
      break;
    }
    written += yield* callEvents(turn, call, output);
  }
  const usage = turnUsage(turn.input, { text: written, audioMs: msOf(spoken.audioBytes) });
  const end = turn.cancelled ? 'cancelled' : answer.finish === 'length' ? 'incomplete' : 'completed';
  const reason = { cancelled: 'client_cancelled', incomplete: 'max_output_tokens', completed: null }[end];
  const details = reason === null ? null : { type: end, reason };
  yield event('response.done', { response: responseObject(turn, { status: end, details, output, usage }) });
  yield event('rate_limits.updated', { rate_limits: rateLimits(turn.number, usage.total_tokens) });
}

function event(type: string, members: object, tokens = 0): TurnEvent {
  return { type, members, tokens };
}

function* messageEvents(turn: Turn, said: Said, output: object[]): Generator<TurnEvent> {
  const { dialect, settings, answer } = turn;
  const { speaks } = settings;
  const id = turn.newItemId();
  const place = { response_id: turn.id, item_id: id, output_index: 0 };
  const at = { ...place, content_index: 0 };
  const head = { id, object: 'realtime.item', type: 'message' };
  const open = { ...head, status: 'in_progress', role: 'assistant', content: [] };
  const item = (value: typeof open): Item => ({
    id,
    type: 'message',
    role: 'assistant',
    text: said.text,
    images: 0,
    audioMs: msOf(said.audioBytes),
    value,
  });
  const part = (): object =>
    speaks ? { type: 'audio', transcript: said.text } : { type: 'text', text: said.text };

  yield* opening(turn, item(open), 0);
  yield event('response.content_part.added', { ...at, part: part() });
  const text = answer.text || answer.refusal;
  const deltas = speaks
    ? inTurns([transcriptDeltas(turn, at, text, said), audioDeltas(turn, at, text, said)])
    : textDeltas(turn, at, text, said);
  for (const delta of deltas) {
    yield delta;
    if (turn.cancelled) {
      break;
    }
  }
  if (speaks) {
    yield event(`${dialect.audioEvent}.done`, at);
    yield event(`${dialect.transcriptEvent}.done`, { ...at, transcript: said.text });
  } else {
    yield event(`${dialect.textEvent}.done`, { ...at, text: said.text });
  }
  yield event('response.content_part.done', { ...at, part: part() });
  const content = speaks
    ? { type: dialect.audioContent, transcript: said.text }
    : { type: dialect.textContent, text: said.text };
  const isWhole = !turn.cancelled && answer.finish !== 'length';
  const done = { ...open, status: isWhole ? 'completed' : 'incomplete', content: [content] as never[] };
  output.push(done);
  yield* closing(turn, item(done), 0);
}

function* textDeltas(turn: Turn, at: object, text: string, said: Said): Generator<TurnEvent> {
  for (const delta of words(text)) {
    said.text += delta;
    yield event(`${turn.dialect.textEvent}.delta`, { ...at, delta }, countTokens(delta));
  }
}

function* transcriptDeltas(turn: Turn, at: object, text: string, said: Said): Generator<TurnEvent> {
  for (const delta of words(text)) {
    said.text += delta;
    yield event(`${turn.dialect.transcriptEvent}.delta`, { ...at, delta }, countTokens(delta));
  }
}

function* audioDeltas(turn: Turn, at: object, text: string, said: Said): Generator<TurnEvent> {
  const { voice, speed } = turn.settings;
  for (const piece of speech({ text, voice, format: 'pcm', speed })) {
    said.audioBytes += piece.length;
    yield event(`${turn.dialect.audioEvent}.delta`, { ...at, delta: piece.toString('base64') });
  }
}

/** @returns the tokens of the arguments sent */
function* callEvents(turn: Turn, call: ToolCall, output: object[]): Generator<TurnEvent, number> {
  const index = output.length;
  const id = turn.newItemId();
  const at = { response_id: turn.id, item_id: id, output_index: index, call_id: call.id };
  const head = { id, object: 'realtime.item', type: 'function_call' as const };
  const known = { name: call.name, call_id: call.id };
  const item = (value: Item['value'], text: string): Item => {
    return { id, type: 'function_call', role: '', text, images: 0, audioMs: 0, value };
  };
  yield* opening(turn, item({ ...head, status: 'in_progress', ...known, arguments: '' }, ''), index);
  let told = '';
  const atOnce = turn.answer.callDelivery === 'at-once';
  for (const delta of atOnce ? [] : pieces(call.input, argumentsPiece)) {
    told += delta;
    yield event('response.function_call_arguments.delta', { ...at, delta }, countTokens(delta));
    if (turn.cancelled) {
      break;
    }
  }
  const input = atOnce ? call.input : told;
  const status = input === call.input && turn.answer.finish !== 'length' ? 'completed' : 'incomplete';
  yield event('response.function_call_arguments.done', { ...at, name: call.name, arguments: input });
  const done = { ...head, status, ...known, arguments: input };
  output.push(done);
  yield* closing(turn, item(done, call.name + input), index);
  return countTokens(input);
}

function* opening(turn: Turn, item: Item, index: number): Generator<TurnEvent> {
  yield event('response.output_item.added', {
    response_id: turn.id,
    output_index: index,
    item: item.value,
  });
  if (turn.conversationId !== null) {
    const type = turn.dialect.isBeta ? 'conversation.item.created' : 'conversation.item.added';
    yield event(type, { previous_item_id: turn.keep(item), item: item.value });
  }
}

function* closing(turn: Turn, item: Item, index: number): Generator<TurnEvent> {
  yield event('response.output_item.done', {
    response_id: turn.id,
    output_index: index,
    item: item.value,
  });
  if (turn.conversationId !== null) {
    const before = turn.keep(item);
    if (!turn.dialect.isBeta) {
      yield event('conversation.item.done', { previous_item_id: before, item: item.value });
    }
  }
}
