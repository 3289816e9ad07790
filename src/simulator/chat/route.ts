import { composeAnswer } from '../answer/answer.js';
import type { Answer, ToolCall } from '../answer/prompt.js';
import { words } from '../answer/tokens.js';
import { type Reply, type Route, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { chatBase, created, openaiFormat } from '../openai/format.js';
import { chatUsage, finishReason, logprobs } from './parts.js';
import { type ChatRequest, chatModels, readChatRequest } from './request.js';
import { chatEvents } from './stream.js';

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
