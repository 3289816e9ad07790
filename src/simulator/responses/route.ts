import { composeAnswer } from '../answer/answer.js';
import { type AnswerFormat, type Reply, type Route, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { created, openaiFormat } from '../openai/format.js';
import {
  compaction,
  ended,
  failure,
  inProgress,
  outputItems,
  type Progress,
  responseObject,
} from './answer.js';
import type { Item } from './items.js';
import {
  type InputRequest,
  type ResponsesRequest,
  readCompactRequest,
  readResponsesRequest,
} from './request.js';
import { EventNumbers, type Plan, responsesEvents } from './stream.js';

/** The routes of the responses protocol. */
export const responsesRoutes: readonly Route[] = [
  ...routesOf('/v1/responses', createResponse),
  ...routesOf('/v1/responses/compact', compact),
  ...routesOf('/v1/responses/input_tokens', countInput),
];

function routesOf(path: string, answer: (request: JsonRequest) => Reply): Route[] {
  return jsonRoutes({ path, answer });
}

/**
 * Answers a request for a response.
 * @throws RequestError with what a caller did wrong
 */
export function createResponse(request: InputRequest): Reply {
  const asked = readResponsesRequest(request);
  const answer = composeAnswer(asked.prompt, 0);
  if (asked.compacts) {
    const { item, usage } = compaction(asked.prompt, asked.items);
    const end: Progress = { ...inProgress, status: 'completed', output: [item], usage };
    return reply({ asked, answer, items: [item], end });
  }
  const items = outputItems(asked, answer);
  return reply({ asked, answer, items, end: ended(asked, answer, items) });
}

function reply(plan: Plan): Reply {
  const { asked, end } = plan;
  const { directives } = asked.prompt;
  const numbers = new EventNumbers();
  const answerFormat = responsesFormat(asked, numbers);
  if (asked.stream) {
    return streamReply({ events: responsesEvents(numbers, plan), answerFormat, directives });
  }
  return jsonReply({ answerFormat, directives }, responseObject(asked, end));
}

function compact(request: JsonRequest): Reply {
  const { prompt, items } = readCompactRequest(request);
  const { item, usage } = compaction(prompt, items);
  const kept = items.filter(({ type, value }) => type === 'message' && value.role === 'user');
  const body = {
    id: `resp_${prompt.digest.slice(0, 32)}`,
    object: 'response.compaction',
    created_at: created,
    output: [...kept.map((one, index) => keptMessage(one, index, prompt.digest)), item],
    usage,
  };
  return jsonReply({ answerFormat: openaiFormat, directives: prompt.directives }, body);
}

function countInput(request: JsonRequest): Reply {
  const { directives, inputTokens } = readCompactRequest(request).prompt;
  const body = { object: 'response.input_tokens', input_tokens: inputTokens };
  return jsonReply({ answerFormat: openaiFormat, directives }, body);
}

function keptMessage({ value }: Item, index: number, digest: string): object {
  const { content } = value;
  return {
    id: `msg_${digest.slice(0, 24)}${index}`,
    type: 'message',
    status: 'completed',
    role: 'user',
    content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
  };
}

/** How the responses protocol words errors and events: in a stream, with the numbers that are next. */
function responsesFormat(asked: ResponsesRequest, numbers: EventNumbers): AnswerFormat {
  return {
    ...openaiFormat,
    errorEvent(form) {
      if (form === 'failed') {
        const failed: Progress = { ...inProgress, status: 'failed', error: failure };
        return numbers.event('response.failed', { response: responseObject(asked, failed) });
      }
      const detail = { code: failure.code, message: failure.message, param: null };
      return numbers.event('error', { ...detail, error: { type: 'server_error', ...detail } });
    },
    contentEvent: (text) =>
      numbers.event('response.output_text.delta', {
        item_id: `msg_${asked.prompt.digest.slice(0, 24)}`,
        output_index: 0,
        content_index: 0,
        delta: text,
        logprobs: [],
      }),
    eventsBeforeContent: 4,
  };
}
