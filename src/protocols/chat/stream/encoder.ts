import type { StreamEvent } from '../../../conversation/answer.js';
import type { AnswerContext, StreamEncoder } from '../../../conversation/codec.js';
import type { LeftOut } from '../../../conversation/left-out.js';
import { isOfVendor } from '../../../conversation/signature.js';
import { answerCallId } from '../../../conversation/tool-calls.js';
import type { Usage } from '../../../conversation/usage.js';
import { framed, type RawTextFrame, rawBytes } from '../../../wire/raw-text.js';
import { openai } from '../../error-formats/formats.js';
import { encodeCitation, encodeLogprobs } from '../annotations.js';
import { answerHead } from '../answer/encode.js';
import { encodeFinish } from '../answer/finish.js';
import { encodeUsage } from '../answer/usage.js';
import { extraContent } from '../carried.js';

type ChoiceEvent = Extract<StreamEvent, { choice: number }>;

/** State of a choice that is being sent. */
interface Choice {
  hasCalls: boolean;
  /** The answer has a vendor's signature that only a call could carry. */
  isSigned: boolean;
}

/**
 * Writes a stream of `chat.completion.chunk` events; see `StreamEncoder`. Each chunk has one choice. The usage is sent
 * last, in a separate chunk, to clients that requested it.
 */
export function createEncoder(context: AnswerContext): StreamEncoder {
  const head = `data: {${answerHead('chat.completion.chunk', context)},"choices":[`;
  const tail = context.includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  const choices: (Choice | undefined)[] = [];
  const { lost } = context;
  let usage: Usage | null = null;
  let inCustomCall = false;
  const whole = takesWholeCalls(context.userAgent) ? new WholeCalls() : null;
  const ending = createEnding(context, head, tail);
  let frame: RawTextFrame | null = null;

  /** @param logprobs the member with its comma, or an empty string */
  function chunk(index: number, delta: string, logprobs = '', finish = 'null'): string {
    return `${head}{"index":${index},"delta":{${delta}}${logprobs},"finish_reason":${finish}}${tail}`;
  }

  /** Returns the chunk that opens a choice, or an empty string if the choice is open. */
  function opening(index: number): string {
    if (choices[index] !== undefined) return '';
    choices[index] = { hasCalls: false, isSigned: false };
    return chunk(index, '"role":"assistant","content":""', ',"logprobs":null');
  }

  function opened(choice: number, delta: string, logprobs = ''): string {
    return opening(choice) + chunk(choice, delta, logprobs);
  }

  function callStart(event: WrittenCall): string {
    const { choice, custom } = event;
    const before = opening(choice);
    const isSigned = context.functionForm && choices[choice]?.isSigned === true;
    choices[choice] = { hasCalls: true, isSigned };
    inCustomCall = custom;
    return before + chunk(choice, startOfCall(event, context));
  }

  return {
    error: null,
    takesRawText: () => choices[0] !== undefined,
    encodeRawText(raw) {
      if (choices[0] === undefined) return null;
      frame ??= framed(rawBytes(`${head}{"index":0,"delta":{"content":"`), `"},"finish_reason":null}${tail}`);
      return frame.before + raw + frame.after;
    },
    rawTextFrame: () => frame,
    encode(given) {
      const event = whole === null ? given : whole.next(given);
      if (event === null || isBeyondForm(event, context)) return '';
      if ('choice' in event) noteLoss(lost, event, choices[event.choice], context);
      switch (event.kind) {
        case 'start':
          usage = event.usage;
          return opening(0);
        case 'text': {
          const logprobs =
            event.logprobs === undefined ? '' : `,"logprobs":${encodeLogprobs(event.logprobs)}`;
          if (event.text === '' && logprobs === '') return '';
          return opened(event.choice, `"content":${JSON.stringify(event.text)}`, logprobs);
        }
        case 'citation':
          return opened(event.choice, `"annotations":[${encodeCitation(event.citation, 0)}]`);
        case 'refusal':
          return opened(event.choice, `"refusal":${JSON.stringify(event.text)}`);
        case 'reasoning':
          return opened(event.choice, `"reasoning_content":${JSON.stringify(event.text)}`);
        case 'signature':
        case 'search':
        case 'callEnd':
          return '';
        case 'callStart':
          return callStart(event);
        case 'callArguments':
          return event.text === '' ? '' : opened(event.choice, restOfCall(event, inCustomCall, context));
        case 'finish': {
          const reason = encodeFinish(event.reason, choices[event.choice]?.hasCalls ?? false, context);
          return opening(event.choice) + ending.finish(chunk(event.choice, '', '', `"${reason}"`));
        }
        case 'usage':
          usage = event.usage;
          return '';
        case 'error':
          return ending.broken(usage) + openai.errorEvent(event.error, '', 0);
        case 'end':
          return `${ending.last(usage)}data: [DONE]\n\n`;
      }
    },
  };
}

/** Tells whether an event belongs to a call for which the older form, `function_call`, has no place. */
function isBeyondForm(event: StreamEvent, { functionForm, lost }: AnswerContext): boolean {
  if (functionForm !== true || (event.kind !== 'callStart' && event.kind !== 'callArguments')) return false;
  if (event.call > 0) lost.add('tool_calls');
  return event.call > 0;
}

/** Returns the member of a delta that begins a call. The older form has no place for an id and a signature. */
function startOfCall(event: WrittenCall, context: AnswerContext): string {
  const { choice, call, name, custom, signature, input = '' } = event;
  const named = `{"name":${JSON.stringify(name)},"${custom ? 'input' : 'arguments'}":${JSON.stringify(input)}}`;
  if (context.functionForm) return `"function_call":${named}`;
  const id = JSON.stringify(answerCallId(event.id, context, choice, call));
  const kind = custom ? 'custom' : 'function';
  const more = extraContent(signature);
  return `"tool_calls":[{"index":${call},"id":${id},"type":"${kind}","${kind}":${named}${more}}]`;
}

/** Returns the member of a delta with more of a call's arguments. */
function restOfCall(
  { call, text }: Extract<StreamEvent, { kind: 'callArguments' }>,
  isCustom: boolean,
  { functionForm }: AnswerContext,
): string {
  const fragment = JSON.stringify(text);
  if (functionForm) return `"function_call":{"arguments":${fragment}}`;
  const input = isCustom ? `"custom":{"input":${fragment}}` : `"function":{"arguments":${fragment}}`;
  return `"tool_calls":[{"index":${call},${input}}]`;
}

/** Records what a client of this protocol does not get of an event. */
function noteLoss(
  lost: LeftOut,
  event: ChoiceEvent,
  choice: Choice | undefined,
  { functionForm }: AnswerContext,
): void {
  switch (event.kind) {
    case 'search':
      lost.add('web_search_call');
      return;
    case 'signature':
      if (choice !== undefined) choice.isSigned ||= isOfVendor(event.signature);
      return;
    case 'finish':
      if (event.reason === 'stopSequence' && event.stopSequence !== null) lost.add('stop_sequence');
      if (choice?.isSigned === true && (functionForm || !choice.hasCalls)) lost.add('signature');
  }
}

type CallStart = Extract<StreamEvent, { kind: 'callStart' }>;

/** The beginning of a call as it is written. */
interface WrittenCall extends CallStart {
  /** The arguments that are known so far; empty if omitted. */
  readonly input?: string;
}

/**
 * Clients of vendors that stream each call in one piece, and therefore read every piece as a call. These are xAI's and
 * Mistral's: their providers of the AI SDK, and `@mistralai/mistralai` and `mistralai` for Python with what is built on
 * them.
 */
const names = ['ai-sdk/xai/', 'ai-sdk/mistral/', 'mistral-client-', 'mistralai'];

/** @param userAgent the client's `user-agent` */
function takesWholeCalls(userAgent: string): boolean {
  return names.some((name) => userAgent.includes(name));
}

/** Most characters of a call that are held. A longer call is sent on in pieces. */
const mostKept = 1024 * 1024;

/** Holds each call of a stream until it is complete. */
class WholeCalls {
  #start: CallStart | null = null;
  #input = '';

  /** @returns the event to write, or null */
  next(event: StreamEvent): StreamEvent | WrittenCall | null {
    if (event.kind === 'callStart') {
      this.#start = event;
      this.#input = '';
      return null;
    }
    if (this.#start === null || (event.kind !== 'callArguments' && event.kind !== 'callEnd')) return event;
    if (event.kind === 'callArguments') this.#input += event.text;
    if (event.kind === 'callArguments' && this.#input.length <= mostKept) return null;
    const call = { ...this.#start, input: this.#input };
    this.#start = null;
    this.#input = '';
    return call;
  }
}

/**
 * Clients of vendors that tell the usage of a stream without being asked, in the chunk with the reason for its end. They
 * do not ask, and some fail on a chunk without a choice (`ai-sdk/mistral`).
 */
const toldClients = [
  ...['ai-sdk/mistral/', 'mistral-client-', 'mistralai', 'ai-sdk/openrouter/', 'ai-sdk/perplexity/'],
  ...['@openrouter/sdk', 'ai-sdk/cerebras/', 'Cerebras/'],
];
/** These read it in a member of their vendor's (https://console.groq.com/docs/api-reference#chat-create). */
const groqClients = ['ai-sdk/groq/', 'Groq/'];

/** How a stream ends: the reasons of its choices, and the usage where a client gets one. */
interface Ending {
  /** @returns what is written for the chunk with a choice's reason */
  finish(chunk: string): string;
  /** @returns what stands before an error */
  broken(usage: Usage | null): string;
  /** @returns what stands before the end */
  last(usage: Usage | null): string;
}

/**
 * @param head the beginning of each chunk, up to its choices
 * @param tail what each chunk ends with
 */
function createEnding(context: AnswerContext, head: string, tail: string): Ending {
  const { includeUsage, userAgent = '' } = context;
  const isIn = (clients: readonly string[]) => clients.some((name) => userAgent.includes(name));
  if (includeUsage) return askedUsage(head);
  const isOfGroq = isIn(groqClients);
  return isOfGroq || isIn(toldClients) ? new ToldUsage(tail, isOfGroq) : noUsage;
}

const noUsage: Ending = { finish: (chunk) => chunk, broken: () => '', last: () => '' };

/** OpenAI's own form: a chunk of its own. */
function askedUsage(head: string): Ending {
  return {
    ...noUsage,
    last: (usage) => (usage === null ? '' : `${head}],"usage":${encodeUsage(usage)}}\n\n`),
  };
}

/** Holds the chunk with the last reason until the usage is known. */
class ToldUsage implements Ending {
  readonly #tail: string;
  readonly #isOfGroq: boolean;
  #chunk = '';

  constructor(tail: string, isOfGroq: boolean) {
    this.#tail = tail;
    this.#isOfGroq = isOfGroq;
  }

  /** @returns the chunk that was held before, which is then that of another choice */
  finish(chunk: string): string {
    const earlier = this.#chunk;
    this.#chunk = chunk;
    return earlier;
  }

  broken(usage: Usage | null): string {
    return this.last(usage);
  }

  last(usage: Usage | null): string {
    const chunk = this.finish('');
    if (chunk === '' || usage === null) return chunk;
    const told = encodeUsage(usage);
    const ofGroq = this.#isOfGroq ? `,"x_groq":{"usage":${told}}` : '';
    return `${chunk.slice(0, -this.#tail.length)}],"usage":${told}${ofGroq}}\n\n`;
  }
}
