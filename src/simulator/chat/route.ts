import { createHash } from 'node:crypto';
import { composeAnswer } from '../answer/answer.js';
import type { Answer, ToolCall } from '../answer/prompt.js';
import { words } from '../answer/tokens.js';
import { DirectiveError } from '../faults/directives.js';
import {
  type AnswerFormat,
  askedForStatus,
  bodyReply,
  type Reply,
  type Route,
  type SimulatorRequest,
  streamReply,
} from '../http/reply.js';
import { OpenAiError, openAiErrorBody } from '../openai/error.js';
import { chatBase, chatUsage, created, finishReason, logprobs } from './parts.js';
import { type ChatRequest, chatModels, readChatRequest } from './request.js';
import { chatEvents, contentEvent } from './stream.js';

/** How the OpenAI family words errors and events. */
export const chatFormat: AnswerFormat = {
  errorBody: (status, message, code) =>
    openAiErrorBody(new OpenAiError(status, message ?? askedForStatus(status), null, code)),
  errorEvent: () =>
    `data: ${openAiErrorBody(new OpenAiError(500, 'The simulator was asked for an error in the stream.'))}\n\n`,
  contentEvent: (text) =>
    contentEvent(chatBase('chatcmpl-simulated', 'chat.completion.chunk', 'sim-text'), text),
  eventsBeforeContent: 1,
  foreign: 'messages',
};

/** The routes of the chat protocol. */
export const chatRoutes: readonly Route[] = [
  { method: 'POST', path: '/v1/chat/completions', handle: completion },
  { method: 'GET', path: '/v1/models', handle: models },
];

/** Answers with an error body of the OpenAI family. */
export function errorReply(error: OpenAiError): Reply {
  return bodyReply({ status: error.status, body: openAiErrorBody(error), answerFormat: chatFormat });
}

function models(): Reply {
  const data = chatModels.map((id) => ({ id, object: 'model', created, owned_by: 'simulator' }));
  return bodyReply({ status: 200, body: JSON.stringify({ object: 'list', data }), answerFormat: chatFormat });
}

function completion(request: SimulatorRequest): Reply {
  const digest = createHash('sha256').update(request.body).digest('hex');
  const headers = { 'x-request-id': `sim-${digest.slice(0, 16)}` };
  try {
    const asked = readChatRequest(request.body, digest, request.directives);
    const answers = Array.from({ length: asked.choices }, (_, index) => composeAnswer(asked.prompt, index));
    const { directives } = asked.prompt;
    const id = `chatcmpl-${digest.slice(0, 24)}`;
    if (asked.stream) {
      const shared = chatBase(id, 'chat.completion.chunk', asked.model);
      return streamReply({
        events: chatEvents(shared, asked, answers),
        answerFormat: chatFormat,
        headers,
        directives,
      });
    }
    const body = JSON.stringify({
      ...chatBase(id, 'chat.completion', asked.model),
      choices: answers.map((answer, index) => choice(asked, answer, index)),
      usage: chatUsage(asked, answers),
    });
    return bodyReply({ status: 200, body, answerFormat: chatFormat, headers, directives });
  } catch (error) {
    if (error instanceof OpenAiError) {
      return { ...errorReply(error), directives: request.directives };
    }
    if (error instanceof DirectiveError) {
      return errorReply(new OpenAiError(400, error.message, null, 'unknown_fault'));
    }
    throw error;
  }
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
