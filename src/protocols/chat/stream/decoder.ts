import type { AnswerSource, StreamDecoder } from '../../../conversation/codec.js';
import type { StreamEvent } from '../../../conversation/events.js';
import { endedEarly } from '../../../conversation/stream-rules.js';
import { type ReasoningName, tagUnsigned } from '../../../conversation/unsigned-reasoning.js';
import { GatewayError } from '../../../errors.js';
import { isObject, type JsonObject, listOf, textOf } from '../../../wire/json.js';
import { foreignStream } from '../../error-formats/upstream-error.js';
import { emptyStream, readChoiceEvent } from '../../openai-shared/choice-stream.js';
import { decodeCitations, decodeLogprobs } from '../annotations.js';
import { contentText, reasoningName } from '../answer/decode.js';
import { decodeFinish } from '../answer/finish.js';
import { decodeUsage } from '../answer/usage.js';
import {
  type CallDeltas,
  createCallDeltas,
  endCalls,
  type HeldArguments,
  readCalls,
} from '../call-deltas.js';
import { streamParts } from './rules.js';

/** Answers that a stream may have; SDKs take no more. */
const maxChoices = 128;

/** A choice that began. */
interface Choice {
  readonly calls: CallDeltas;
  /** Of the reasoning that is not over yet, or null. */
  reasoning: ReasoningName | null;
  finished: boolean;
}

interface Progress {
  readonly model: string;
  readonly choices: Map<number, Choice>;
  readonly held: HeldArguments;
  /** As the last chunk that named one has it: the usage may stand in one that does not. */
  tier: unknown;
  started: boolean;
  /** Nothing more is to be told. */
  over: boolean;
}

/** Reads a stream of `chat.completion.chunk` events; see `StreamDecoder`. Members of a wrong type count as absent. */
export function createDecoder({ model }: AnswerSource): StreamDecoder {
  const progress: Progress = {
    model,
    choices: new Map(),
    held: { length: 0 },
    tier: null,
    started: false,
    over: false,
  };
  return {
    textMember: 'content',
    decode(event, data, out) {
      if (progress.over) return;
      const read = readChoiceEvent(streamParts, event, data);
      if (read === 'end') endStream(progress, out);
      else if (read instanceof GatewayError) fail(progress, read, out);
      else if (read !== null) decodeChunk(progress, read, out);
    },
    finish(out) {
      if (progress.over) return;
      // Some upstreams leave `[DONE]` out; then every choice must have come to its end.
      const choices = [...progress.choices.values()];
      if (choices.length > 0 && choices.every(({ finished }) => finished)) endStream(progress, out);
      else fail(progress, endedEarly(), out);
    },
  };
}

/** After `[DONE]` a choice without a reason to finish counts as finished. */
function endStream(progress: Progress, out: StreamEvent[]): void {
  if (progress.choices.size === 0) {
    fail(progress, emptyStream(), out);
    return;
  }
  for (const [index, choice] of progress.choices) finishChoice(progress, choice, index, null, out);
  progress.over = true;
  out.push({ kind: 'end' });
}

function fail(progress: Progress, error: GatewayError, out: StreamEvent[]): void {
  progress.over = true;
  out.push({ kind: 'error', error });
}

function decodeChunk(progress: Progress, chunk: JsonObject, out: StreamEvent[]): void {
  if (!progress.started) {
    progress.started = true;
    out.push({ kind: 'start', usage: null });
  }
  for (const choice of listOf(chunk.choices)) {
    const failure = isObject(choice) ? decodeChoice(progress, choice, out) : null;
    if (failure !== null) {
      fail(progress, failure, out);
      return;
    }
  }
  progress.tier = chunk.service_tier ?? progress.tier;
  const usage = decodeUsage({ usage: usageIn(chunk), service_tier: progress.tier });
  if (usage !== null) out.push({ kind: 'usage', usage });
}

/** Moonshot tells it in the choice that ends, and Groq in a member of its own. */
function usageIn(chunk: JsonObject): unknown {
  if (isObject(chunk.usage)) return chunk.usage;
  for (const choice of listOf(chunk.choices))
    if (isObject(choice) && isObject(choice.usage)) return choice.usage;
  return isObject(chunk.x_groq) ? chunk.x_groq.usage : null;
}

function decodeChoice(progress: Progress, value: JsonObject, out: StreamEvent[]): GatewayError | null {
  const index = typeof value.index === 'number' ? value.index : 0;
  if (!(Number.isInteger(index) && index >= 0 && index < maxChoices))
    return foreignStream(streamParts.protocol, `a choice with the index ${index}`);
  let choice = progress.choices.get(index);
  if (choice === undefined) {
    choice = { calls: createCallDeltas(index, progress.held), reasoning: null, finished: false };
    progress.choices.set(index, choice);
  }
  if (choice.finished) return null;
  if (isObject(value.delta)) {
    addReasoning(progress, choice, index, value.delta, out);
    addTexts(index, value.delta, value.logprobs, out);
    const error = readCalls(choice.calls, value.delta, out);
    if (error !== null) return error;
  }
  // Some upstreams have an empty reason in every chunk.
  const reason = textOf(value.finish_reason);
  if (reason !== '') finishChoice(progress, choice, index, reason, out);
  return null;
}

/** Reasoning is over when anything else comes: its name is told then, as its signature. */
function addReasoning(
  progress: Progress,
  choice: Choice,
  index: number,
  delta: JsonObject,
  out: StreamEvent[],
): void {
  const name = reasoningName(delta);
  if (name !== null) {
    choice.reasoning ??= name;
    out.push({ kind: 'reasoning', choice: index, text: delta[name] as string });
  }
  if (choice.reasoning === null) return;
  if (contentText(delta.content) !== '' || delta.refusal || hasCalls(delta))
    endReasoning(progress, choice, index, out);
}

function hasCalls({ tool_calls: calls, function_call: call }: JsonObject): boolean {
  return (Array.isArray(calls) && calls.length > 0) || isObject(call);
}

function endReasoning({ model }: Progress, choice: Choice, index: number, out: StreamEvent[]): void {
  if (choice.reasoning === null) return;
  out.push({ kind: 'signature', choice: index, signature: tagUnsigned(choice.reasoning, model) });
  choice.reasoning = null;
}

function addTexts(index: number, delta: JsonObject, logprobs: unknown, out: StreamEvent[]): void {
  const text = contentText(delta.content);
  const tokens = decodeLogprobs(logprobs);
  if (tokens !== undefined) out.push({ kind: 'text', choice: index, text, logprobs: tokens });
  else if (text !== '') out.push({ kind: 'text', choice: index, text });
  const refusal = textOf(delta.refusal);
  if (refusal !== '') out.push({ kind: 'refusal', choice: index, text: refusal });
  for (const citation of decodeCitations(delta.annotations))
    out.push({ kind: 'citation', choice: index, citation });
}

function finishChoice(
  progress: Progress,
  choice: Choice,
  index: number,
  reason: string | null,
  out: StreamEvent[],
): void {
  if (choice.finished) return;
  choice.finished = true;
  endCalls(choice.calls, out);
  endReasoning(progress, choice, index, out);
  out.push({
    kind: 'finish',
    choice: index,
    reason: decodeFinish(reason, choice.calls.started > 0),
    stopSequence: null,
  });
}
