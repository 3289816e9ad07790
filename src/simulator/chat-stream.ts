import { type ChatBase, chatUsage, finishReason, logprobs } from './chat-parts.js';
import type { ChatRequest } from './chat-request.js';
import type { Answer, ToolCall } from './prompt.js';
import type { Step } from './reply.js';
import { countTokens, pieces, words } from './tokens.js';

const argumentsPiece = 12;

interface Delta {
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
  let open = answers.map((answer, index) => ({ index, deltas: deltas(asked, answer) }));
  while (open.length > 0) {
    const still: typeof open = [];
    for (const choice of open) {
      const next = choice.deltas.next();
      if (next.done === true) {
        continue;
      }
      const { delta, finish, tokens } = next.value;
      const body = {
        index: choice.index,
        delta,
        logprobs: next.value.logprobs ?? null,
        finish_reason: finish ?? null,
      };
      yield event({ ...base, choices: [body], ...usage }, tokens);
      still.push(choice);
    }
    open = still;
  }
  if (asked.includeUsage) {
    yield event({ ...base, choices: [], usage: chatUsage(asked, answers) }, 0);
  }
  yield { kind: 'data', bytes: 'data: [DONE]\n\n', tokens: 0 };
}

/** SSE text of one content chunk. */
export function contentEvent(base: ChatBase, text: string): string {
  const choice = { index: 0, delta: { content: text }, logprobs: null, finish_reason: null };
  return `data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`;
}

function event(body: object, tokens: number): Step {
  return { kind: 'data', bytes: `data: ${JSON.stringify(body)}\n\n`, tokens };
}

function* deltas(asked: ChatRequest, answer: Answer): Generator<Delta> {
  yield { delta: { role: 'assistant', content: '' }, tokens: 0 };
  for (const word of words(answer.reasoning)) {
    yield { delta: { reasoning_content: word }, tokens: countTokens(word) };
  }
  for (const word of words(answer.text)) {
    const detail =
      asked.topLogprobs === null ? null : { content: logprobs([word], asked.topLogprobs), refusal: null };
    yield { delta: { content: word }, tokens: countTokens(word), logprobs: detail };
  }
  for (const [index, call] of answer.calls.entries()) {
    const wrap = asked.legacyFunctions ? legacyCall : toolCall;
    yield { delta: wrap(index, call, null), tokens: 0 };
    for (const piece of pieces(call.input, argumentsPiece)) {
      yield { delta: wrap(index, call, piece), tokens: countTokens(piece) };
    }
  }
  yield { delta: {}, tokens: 0, finish: finishReason(asked, answer) };
}

/** A call's first delta (no piece) names it once, the later ones only carry its input. */
function toolCall(index: number, call: ToolCall, piece: string | null): object {
  const field = call.custom ? 'input' : 'arguments';
  const type = call.custom ? 'custom' : 'function';
  return {
    tool_calls: [
      piece === null
        ? { index, id: call.id, type, [type]: { name: call.name, [field]: '' } }
        : { index, [type]: { [field]: piece } },
    ],
  };
}

function legacyCall(_index: number, call: ToolCall, piece: string | null): object {
  return { function_call: piece === null ? { name: call.name, arguments: '' } : { arguments: piece } };
}
