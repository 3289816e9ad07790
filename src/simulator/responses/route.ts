import { composeAnswer } from '../answer/answer.js';
import type { Answer } from '../answer/prompt.js';
import { countTokens, pieces, words } from '../answer/tokens.js';
import { logprobs } from '../chat/parts.js';
import { type AnswerFormat, type Reply, type Route, type Step, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { created, openaiFormat } from '../openai/format.js';
import {
  type CustomCallItem,
  compaction,
  ended,
  type FunctionCallItem,
  failure,
  inProgress,
  type MessageItem,
  type MessagePart,
  type OutputItem,
  outputItems,
  type Progress,
  type ReasoningItem,
  responseObject,
} from './answer.js';
import type { Item } from './items.js';
import {
  type InputRequest,
  type ResponsesRequest,
  readCompactRequest,
  readResponsesRequest,
} from './request.js';

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

/** The answer format of the responses protocol; in a stream, events get the next numbers. */
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

const argumentsPiece = 12;

/** Numbers and serializes the events of a stream. */
class EventNumbers {
  #next = 0;

  /** SSE text of an event with the next number. */
  event(type: string, members: object): string {
    const data = { type, sequence_number: this.#next, ...members };
    this.#next += 1;
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

/** An event before it has its number. */
interface Event {
  readonly type: string;
  readonly members: object;
  readonly tokens: number;
}

/** A planned response. */
interface Plan {
  readonly asked: ResponsesRequest;
  readonly answer: Answer;
  readonly items: readonly OutputItem[];
  readonly end: Progress;
}

/** The events of a streamed response: its head, its items, and its end. */
function* responsesEvents(numbers: EventNumbers, plan: Plan): Generator<Step> {
  for (const { type, members, tokens } of eventsOf(plan)) {
    yield { kind: 'data', bytes: numbers.event(type, members), tokens };
  }
}

function* eventsOf({ asked, answer, items, end }: Plan): Generator<Event> {
  const response = responseObject(asked, inProgress);
  yield event('response.created', { response });
  yield event('response.in_progress', { response });
  for (const [index, item] of items.entries()) {
    yield event('response.output_item.added', { output_index: index, item: opening(item) });
    const place = { item_id: item.id, output_index: index };
    switch (item.type) {
      case 'reasoning':
        yield* reasoningEvents(item, place);
        break;
      case 'message':
        yield* messageEvents(item, place, asked);
        break;
      case 'function_call':
      case 'custom_tool_call':
        yield* callEvents(item, place, answer);
    }
    yield event('response.output_item.done', { output_index: index, item });
  }
  const word = end.status === 'failed' || end.status === 'incomplete' ? end.status : 'completed';
  yield event(`response.${word}`, { response: responseObject(asked, end) });
}

function event(type: string, members: object, tokens = 0): Event {
  return { type, members, tokens };
}

/** An item in the event that announces it. */
function opening(item: OutputItem): object {
  const status = 'in_progress';
  switch (item.type) {
    case 'reasoning':
      return { id: item.id, type: item.type, summary: [], status };
    case 'message':
      return { ...item, status, content: [] };
    case 'function_call':
      return { ...item, status, arguments: '' };
    case 'custom_tool_call':
      return { ...item, status, input: '' };
    case 'compaction':
      return item;
  }
}

function* reasoningEvents(item: ReasoningItem, place: object): Generator<Event> {
  for (const [index, part] of item.summary.entries()) {
    const at = { ...place, summary_index: index };
    yield event('response.reasoning_summary_part.added', { ...at, part: { ...part, text: '' } });
    for (const delta of words(part.text)) {
      yield event('response.reasoning_summary_text.delta', { ...at, delta }, countTokens(delta));
    }
    yield event('response.reasoning_summary_text.done', { ...at, text: part.text });
    yield event('response.reasoning_summary_part.done', { ...at, part });
  }
}

function* messageEvents(item: MessageItem, place: object, asked: ResponsesRequest): Generator<Event> {
  for (const [index, part] of item.content.entries()) {
    const at = { ...place, content_index: index };
    yield event('response.content_part.added', { ...at, part: emptied(part) });
    if (part.type === 'refusal') {
      for (const delta of words(part.refusal)) {
        yield event('response.refusal.delta', { ...at, delta }, countTokens(delta));
      }
      yield event('response.refusal.done', { ...at, refusal: part.refusal });
    } else {
      const { topLogprobs } = asked;
      for (const delta of words(part.text)) {
        const detail = topLogprobs === null ? [] : logprobs([delta], topLogprobs);
        yield event('response.output_text.delta', { ...at, delta, logprobs: detail }, countTokens(delta));
      }
      yield event('response.output_text.done', { ...at, text: part.text, logprobs: part.logprobs });
    }
    yield event('response.content_part.done', { ...at, part });
  }
}

function emptied(part: MessagePart): MessagePart {
  return part.type === 'refusal' ? { ...part, refusal: '' } : { ...part, text: '', logprobs: [] };
}

function* callEvents(
  item: FunctionCallItem | CustomCallItem,
  place: object,
  answer: Answer,
): Generator<Event> {
  const custom = item.type === 'custom_tool_call';
  const input = custom ? item.input : item.arguments;
  const type = custom ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
  for (const delta of answer.callDelivery === 'at-once' ? [] : pieces(input, argumentsPiece)) {
    yield event(`${type}.delta`, { ...place, delta }, countTokens(delta));
  }
  yield event(`${type}.done`, { ...place, ...(custom ? { input } : { name: item.name, arguments: input }) });
}
