import type { Answer, ToolCall } from '../answer/prompt.js';
import { countTokens, inOrder, inTurns, pieces, words } from '../answer/tokens.js';
import type { Step } from '../http/reply.js';
import type { ChatBase } from '../openai/format.js';
import { chatUsage, finishReason, logprobs } from './parts.js';
import type { ChatRequest } from './request.js';

const argumentsPiece = 12;

interface Delta {
  readonly index: number;
  readonly delta: object;
  readonly tokens: number;
  readonly logprobs?: object | null;
  readonly finish?: string;
}

/**
 * The events of a streamed chat completion: for each choice role, reasoning, content, calls, finish; then the usage
 * if it was asked for; then `[DONE]`. Choices take turns.
 */
export function* chatEvents(base: ChatBase, asked: ChatRequest, answers: readonly Answer[]): Generator<Step> {
  const usage = asked.includeUsage ? { usage: null } : {};
  const choices = answers.map((answer, index) => choiceDeltas(asked, answer, index));
  for (const { index, delta, finish, tokens, logprobs } of inTurns(choices)) {
    const choice = { index, delta, logprobs: logprobs ?? null, finish_reason: finish ?? null };
    yield event({ ...base, choices: [choice], ...usage }, tokens);
  }
  if (asked.includeUsage) {
    yield event({ ...base, choices: [], usage: chatUsage(asked, answers) }, 0);
  }
  yield { kind: 'data', bytes: 'data: [DONE]\n\n', tokens: 0 };
}

function event(body: object, tokens: number): Step {
  return { kind: 'data', bytes: `data: ${JSON.stringify(body)}\n\n`, tokens };
}

function* choiceDeltas(asked: ChatRequest, answer: Answer, index: number): Generator<Delta> {
  yield { index, delta: { role: 'assistant', content: '' }, tokens: 0 };
  for (const word of words(answer.reasoning)) {
    yield { index, delta: { reasoning_content: word }, tokens: countTokens(word) };
  }
  for (const word of words(answer.refusal)) {
    yield { index, delta: { refusal: word }, tokens: countTokens(word) };
  }
  for (const word of words(answer.text)) {
    const detail =
      asked.topLogprobs === null ? null : { content: logprobs([word], asked.topLogprobs), refusal: null };
    yield { index, delta: { content: word }, tokens: countTokens(word), logprobs: detail };
  }
  const word = asked.legacyFunctions ? legacyCall : toolCall;
  const calls = answer.calls.map((call, place) =>
    callDeltas(call, answer, (piece) => word(place, call, piece)),
  );
  for (const { delta, tokens } of answer.callDelivery === 'interleaved' ? inTurns(calls) : inOrder(calls)) {
    yield { index, delta, tokens };
  }
  yield { index, delta: {}, tokens: 0, finish: finishReason(asked, answer) };
}

/** A piece of a call: its input, and whether it opens the call. */
interface Piece {
  readonly input: string;
  readonly opens: boolean;
}

function* callDeltas(
  call: ToolCall,
  answer: Answer,
  word: (piece: Piece) => object,
): Generator<{ delta: object; tokens: number }> {
  if (answer.callDelivery === 'at-once') {
    yield { delta: word({ input: call.input, opens: true }), tokens: countTokens(call.input) };
    return;
  }
  yield { delta: word({ input: '', opens: true }), tokens: 0 };
  for (const input of pieces(call.input, argumentsPiece)) {
    yield { delta: word({ input, opens: false }), tokens: countTokens(input) };
  }
}

/** The delta that opens a call names it, the later ones only carry its input. */
function toolCall(index: number, call: ToolCall, { input, opens }: Piece): object {
  const field = call.custom ? 'input' : 'arguments';
  const type = call.custom ? 'custom' : 'function';
  return {
    tool_calls: [
      opens
        ? { index, id: call.id, type, [type]: { name: call.name, [field]: input } }
        : { index, [type]: { [field]: input } },
    ],
  };
}

function legacyCall(_index: number, call: ToolCall, { input, opens }: Piece): object {
  return { function_call: opens ? { name: call.name, arguments: input } : { arguments: input } };
}
