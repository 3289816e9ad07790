import { composeAnswer } from '../answer/answer.js';
import type { Answer, ToolCall } from '../answer/prompt.js';
import { countTokens, inOrder, inTurns, pieces, words } from '../answer/tokens.js';
import { type Reply, type Route, type Step, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { type ChatBase, chatBase, created, openaiFormat } from '../openai/format.js';
import { chatUsage, finishReason, logprobs } from './parts.js';
import { type ChatRequest, chatModels, readChatRequest } from './request.js';

/** The routes of the chat protocol. */
export const chatRoutes: readonly Route[] = [
  ...jsonRoutes({ path: '/v1/chat/completions', answer: completion }),
  { method: 'GET', path: '/v1/models', handle: models },
];

function models(): Reply {
  const data = chatModels.map((id) => ({ id, object: 'model', created, owned_by: 'simulator' }));
  return jsonReply({ answerFormat: openaiFormat, directives: [] }, { object: 'list', data });
}

function completion(request: JsonRequest): Reply {
  const { answerFormat } = request;
  const asked = readChatRequest(request);
  const answers = Array.from({ length: asked.choices }, (_, index) => composeAnswer(asked.prompt, index));
  const { directives } = asked.prompt;
  const id = `chatcmpl-${request.digest.slice(0, 24)}`;
  if (asked.stream) {
    const shared = chatBase(id, 'chat.completion.chunk', asked.model);
    return streamReply({ events: chatEvents(shared, asked, answers), answerFormat, directives });
  }
  return jsonReply(
    { answerFormat, directives },
    {
      ...chatBase(id, 'chat.completion', asked.model),
      choices: answers.map((answer, index) => choice(asked, answer, index)),
      usage: chatUsage(asked, answers),
    },
  );
}

function choice(asked: ChatRequest, answer: Answer, index: number): object {
  const [call] = answer.calls;
  const legacy = asked.legacyFunctions && call !== undefined;
  return {
    index,
    message: {
      role: 'assistant',
      content: answer.calls.length > 0 || answer.refusal !== '' ? null : answer.text,
      refusal: answer.refusal || null,
      annotations: [],
      ...(answer.reasoning === '' ? {} : { reasoning_content: answer.reasoning }),
      ...(legacy ? { function_call: { name: call.name, arguments: call.input } } : {}),
      ...(!legacy && answer.calls.length > 0 ? { tool_calls: answer.calls.map(toolCall) } : {}),
    },
    logprobs:
      asked.topLogprobs === null
        ? null
        : { content: logprobs(words(answer.text), asked.topLogprobs), refusal: null },
    finish_reason: finishReason(asked, answer),
  };
}

function toolCall(call: ToolCall): object {
  return call.custom
    ? { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } }
    : { id: call.id, type: 'function', function: { name: call.name, arguments: call.input } };
}

const argumentsPiece = 12;

interface Delta {
  readonly index: number;
  readonly delta: object;
  readonly tokens: number;
  readonly logprobs?: object | null;
  readonly finish?: string;
}

/**
 * The events of a streamed chat completion: for each choice role, reasoning, content, calls, finish; then the usage if
 * requested; then `[DONE]`. Choices are interleaved.
 */
function* chatEvents(base: ChatBase, asked: ChatRequest, answers: readonly Answer[]): Generator<Step> {
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
  const word = asked.legacyFunctions ? legacyCall : callDelta;
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

/** A delta of a call: the first one names it, later ones have only its input. */
function callDelta(index: number, call: ToolCall, { input, opens }: Piece): object {
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
