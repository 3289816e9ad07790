import type { Answer, AnswerChoice, AnswerPart } from '../../../conversation/answer.js';
import type { AnswerSource } from '../../../conversation/codec.js';
import type { ReasoningPart, ToolCallPart } from '../../../conversation/request.js';
import {
  type ReasoningName,
  reasoningNames,
  tagOpaque,
  tagUnsigned,
} from '../../../conversation/unsigned-reasoning.js';
import { GatewayError } from '../../../errors.js';
import {
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  objectOf,
  textOf,
  textOrNull,
} from '../../../wire/json.js';
import { upstreamError } from '../../error-formats/upstream-error.js';
import { decodeCitations, decodeLogprobs } from '../annotations.js';
import { ReasoningDetails } from '../reasoning-details.js';
import { decodeFinish } from './finish.js';
import { decodeUsage } from './usage.js';

/**
 * Reads a `chat.completion`; see `TextCodec.decodeAnswer`. Members of a wrong type count as absent.
 * @throws {GatewayError} `upstream_error` for a body without any message, or the error that its `error` reports
 */
export function decodeAnswer(body: JsonObject, source: AnswerSource): Answer {
  const error = upstreamError(body.error);
  if (error !== null) throw error;
  const choices = listOf(body.choices).filter(hasMessage);
  if (choices.length === 0)
    throw new GatewayError('upstream_error', 'The upstream answered without a message.');
  choices.sort((one, other) => (numberOrNull(one.index) ?? 0) - (numberOrNull(other.index) ?? 0));
  return { choices: choices.map((choice) => decodeChoice(choice, source)), usage: decodeUsage(body) };
}

/** Returns the text of a message or delta: a string or, from some upstreams, an array with text parts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  let text = '';
  for (const part of listOf(content))
    if (isObject(part) && part.type === 'text' && typeof part.text === 'string') text += part.text;
  return text;
}

/** Returns the name of the member with the reasoning of a message or delta, or null. */
export function reasoningName(message: JsonObject): ReasoningName | null {
  return reasoningNames.find((name) => textOrNull(message[name])) ?? null;
}

/** Returns the arguments of a call: JSON text or, from some upstreams, the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return isObject(value) ? JSON.stringify(value) : '';
}

/** Returns the signature that the vendor of generateContent writes beside a call, or null; see `carried.ts`. */
export function signatureBeside({ extra_content: extra }: JsonObject): string | null {
  const google = isObject(extra) ? extra.google : null;
  return isObject(google) ? textOrNull(google.thought_signature) : null;
}

function hasMessage(choice: unknown): choice is JsonObject {
  return isObject(choice) && isObject(choice.message);
}

function decodeChoice(choice: JsonObject, { model }: AnswerSource): AnswerChoice {
  const message = objectOf(choice.message);
  const parts: AnswerPart[] = [];
  const name = reasoningName(message);
  if (name !== null)
    parts.push({ kind: 'reasoning', text: message[name] as string, signature: tagUnsigned(name, model) });
  const details = new ReasoningDetails();
  details.add(message);
  const token = details.takeToken(model);
  if (token !== null) parts.push({ kind: 'reasoning', text: '', signature: token });
  const text = contentText(message.content);
  if (text !== '') {
    const citations = decodeCitations(message.annotations);
    parts.push({
      kind: 'text',
      text,
      citations: citations.length > 0 ? citations : undefined,
      logprobs: decodeLogprobs(choice.logprobs),
    });
  }
  const refusal = textOf(message.refusal);
  if (refusal !== '') parts.push({ kind: 'refusal', text: refusal });
  const calls = decodeCalls(message, model);
  parts.push(...calls);
  const hasCalls = calls.some(({ kind }) => kind === 'toolCall');
  return { parts, finish: decodeFinish(choice.finish_reason, hasCalls), stopSequence: null };
}

/**
 * Reads the calls of a message, each after the signature beside it. A call without a name is ignored: no client could
 * answer it. A missing id stays empty.
 */
function decodeCalls(message: JsonObject, model: string): (ToolCallPart | ReasoningPart)[] {
  const calls = listOf(message.tool_calls);
  const parts: (ToolCallPart | ReasoningPart)[] = [];
  for (const call of calls) {
    if (!isObject(call)) continue;
    const beside = signatureBeside(call);
    if (beside !== null)
      parts.push({ kind: 'reasoning', text: '', signature: tagOpaque('thought_signature', beside, model) });
    const id = textOf(call.id);
    if (isObject(call.custom)) addCall(parts, id, call.custom, true);
    else if (isObject(call.function)) addCall(parts, id, call.function, false);
  }
  if (isObject(message.function_call)) addCall(parts, '', message.function_call, false);
  return parts;
}

function addCall(
  parts: (ToolCallPart | ReasoningPart)[],
  id: string,
  call: JsonObject,
  custom: boolean,
): void {
  const { name } = call;
  if (typeof name !== 'string' || name === '') return;
  const input = argumentsText(custom ? call.input : call.arguments);
  // Some upstreams write empty arguments as null.
  const empty = !custom && ['', 'null'].includes(input.trim());
  parts.push({ kind: 'toolCall', id, name, input: empty ? '{}' : input, custom, at: '' });
}
