import { answerCallId } from '../../../conversation/call-id.js';
import type { AnswerContext, StreamEncoder } from '../../../conversation/codec.js';
import type { StreamEvent } from '../../../conversation/events.js';
import type { LeftOut } from '../../../conversation/left-out.js';
import type { Usage } from '../../../conversation/usage.js';
import { framed, type RawTextFrame, rawBytes } from '../../../wire/raw-text.js';
import { openai } from '../../error-formats/openai.js';
import { encodeCitation, encodeLogprobs } from '../annotations.js';
import { answerHead } from '../answer/encode.js';
import { encodeFinish } from '../answer/finish.js';
import { encodeUsage } from '../answer/usage.js';
import { extraContent, isOfVendor } from '../carried.js';

type CallStart = Extract<StreamEvent, { kind: 'callStart' }>;
type ChoiceEvent = Extract<StreamEvent, { choice: number }>;

/** What was sent of a choice. */
interface Choice {
  hasCalls: boolean;
  /** A vendor has signed what only a call could carry. */
  isSigned: boolean;
}

/**
 * Writes a stream of `chat.completion.chunk` events; see `StreamEncoder`. Each chunk has one choice, and the usage
 * comes last, in a chunk of its own, for clients that asked for it.
 */
export function createEncoder(context: AnswerContext): StreamEncoder {
  const head = `data: {${answerHead('chat.completion.chunk', context)},"choices":[`;
  const tail = context.includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  const choices: (Choice | undefined)[] = [];
  const { lost } = context;
  let usage: Usage | null = null;
  let inCustomCall = false;
  let frame: RawTextFrame | null = null;

  /** @param logprobs the member with its comma, or nothing */
  function chunk(index: number, delta: string, logprobs = '', finish = 'null'): string {
    return `${head}{"index":${index},"delta":{${delta}}${logprobs},"finish_reason":${finish}}${tail}`;
  }

  /** The chunk that opens a choice, before the first of its others; else nothing. */
  function opening(index: number): string {
    if (choices[index] !== undefined) return '';
    choices[index] = { hasCalls: false, isSigned: false };
    return chunk(index, '"role":"assistant","content":""', ',"logprobs":null');
  }

  function opened(choice: number, delta: string, logprobs = ''): string {
    return opening(choice) + chunk(choice, delta, logprobs);
  }

  function callStart({ choice, call, id, name, custom, signature }: CallStart): string {
    const before = opening(choice);
    choices[choice] = { hasCalls: true, isSigned: false };
    inCustomCall = custom;
    const kind = custom ? 'custom' : 'function';
    const input = custom ? 'input' : 'arguments';
    const ids = `"index":${call},"id":${JSON.stringify(answerCallId(id, context, choice, call))}`;
    const named = `"type":"${kind}","${kind}":{"name":${JSON.stringify(name)},"${input}":""}`;
    return before + chunk(choice, `"tool_calls":[{${ids},${named}${extraContent(signature)}}]`);
  }

  function callArguments(choice: number, call: number, text: string): string {
    const fragment = JSON.stringify(text);
    const input = inCustomCall ? `"custom":{"input":${fragment}}` : `"function":{"arguments":${fragment}}`;
    return opened(choice, `"tool_calls":[{"index":${call},${input}}]`);
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
    encode(event) {
      if (lost !== undefined && 'choice' in event) noteLoss(lost, event, choices[event.choice]);
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
          return event.text === '' ? '' : callArguments(event.choice, event.call, event.text);
        case 'finish': {
          const before = opening(event.choice);
          const reason = encodeFinish(event.reason, choices[event.choice]?.hasCalls ?? false);
          return before + chunk(event.choice, '', '', `"${reason}"`);
        }
        case 'usage':
          usage = event.usage;
          return '';
        case 'error':
          return openai.errorEvent(event.error, '', 0);
        case 'end':
          return `${usage === null || !context.includeUsage ? '' : usageChunk(head, usage)}data: [DONE]\n\n`;
      }
    },
  };
}

/** @param head of each chunk, up to its choices */
function usageChunk(head: string, usage: Usage): string {
  return `${head}],"usage":${encodeUsage(usage)}}\n\n`;
}

/** Tells what a client of this protocol does not get of an event. */
function noteLoss(lost: LeftOut, event: ChoiceEvent, choice: Choice | undefined): void {
  switch (event.kind) {
    case 'search':
      lost.add('web_search_call');
      return;
    case 'signature':
      if (choice !== undefined) choice.isSigned ||= isOfVendor(event.signature);
      return;
    case 'finish':
      if (event.reason === 'stopSequence' && event.stopSequence !== null) lost.add('stop_sequence');
      if (choice?.isSigned === true && !choice.hasCalls) lost.add('signature');
  }
}
