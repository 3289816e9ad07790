import { composeAnswer } from '../answer/answer.js';
import { type ProtocolRequest, protocolRoute } from '../http/protocol-route.js';
import { bodyReply, type Reply, type Route, streamReply } from '../http/reply.js';
import { answerBlocks, ending, messagesUsage, wholeBlock } from './answer.js';
import { readMessagesRequest } from './request.js';
import { messagesEvents, messagesFormat } from './stream.js';

/** The routes of the messages protocol. */
export const messagesRoutes: readonly Route[] = [
  route('/v1/messages', create),
  route('/v1/messages/count_tokens', count),
];

function route(path: string, answer: (request: ProtocolRequest) => Reply): Route {
  return protocolRoute({
    path,
    answerFormat: (_target, digest) => messagesFormat(requestId(digest)),
    headers: (digest) => ({ 'request-id': requestId(digest) }),
    answer,
  });
}

function requestId(digest: string): string {
  return `req_${digest.slice(0, 24)}`;
}

function create(request: ProtocolRequest): Reply {
  const { answerFormat, digest } = request;
  const asked = readMessagesRequest(request, 'message');
  const answer = composeAnswer(asked.prompt, 0);
  const { directives } = asked.prompt;
  const head = { id: `msg_${digest.slice(0, 24)}`, type: 'message', role: 'assistant', model: asked.model };
  if (asked.stream) {
    return streamReply({ events: messagesEvents(head, asked, answer), answerFormat, directives });
  }
  const body = JSON.stringify({
    ...head,
    content: answerBlocks(asked, answer).map(wholeBlock),
    ...ending(answer),
    usage: messagesUsage(asked, answer, answer.outputTokens),
  });
  return bodyReply({ status: 200, body, answerFormat, directives });
}

function count(request: ProtocolRequest): Reply {
  const { answerFormat } = request;
  const { directives, inputTokens } = readMessagesRequest(request, 'count').prompt;
  const body = JSON.stringify({ input_tokens: inputTokens });
  return bodyReply({ status: 200, body, answerFormat, directives });
}
