import { composeAnswer } from '../answer/answer.js';
import { type Reply, type Route, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { answerBlocks, ending, messagesUsage, wholeBlock } from './answer.js';
import { readMessagesRequest } from './request.js';
import { messagesEvents, messagesFormat } from './stream.js';

/** The routes of the messages protocol. */
export const messagesRoutes: readonly Route[] = [
  ...routesOf('/v1/messages', create),
  ...routesOf('/v1/messages/count_tokens', count),
];

function routesOf(path: string, answer: (request: JsonRequest) => Reply): Route[] {
  return jsonRoutes({
    path,
    answerFormat: (digest) => messagesFormat(requestId(digest)),
    headers: (digest) => ({ 'request-id': requestId(digest) }),
    answer,
  });
}

function requestId(digest: string): string {
  return `req_${digest.slice(0, 24)}`;
}

function create(request: JsonRequest): Reply {
  const { answerFormat, digest } = request;
  const asked = readMessagesRequest(request, 'message');
  const answer = composeAnswer(asked.prompt, 0);
  const { directives } = asked.prompt;
  const head = { id: `msg_${digest.slice(0, 24)}`, type: 'message', role: 'assistant', model: asked.model };
  if (asked.stream) {
    return streamReply({ events: messagesEvents(head, asked, answer), answerFormat, directives });
  }
  return jsonReply(
    { answerFormat, directives },
    {
      ...head,
      content: answerBlocks(asked, answer).map(wholeBlock),
      ...ending(answer),
      usage: messagesUsage(asked, answer, answer.outputTokens),
    },
  );
}

function count(request: JsonRequest): Reply {
  const { directives, inputTokens } = readMessagesRequest(request, 'count').prompt;
  return jsonReply({ answerFormat: request.answerFormat, directives }, { input_tokens: inputTokens });
}
