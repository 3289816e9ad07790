import { isObjectText } from '../../wire/json.js';
import type { Answer } from '../answer.js';
import { objectArguments } from '../call-arguments.js';
import { clientTraitsOf } from '../client-traits.js';
import type { StreamEvent } from '../events.js';
import type { ConversationRequest, ToolCallPart } from '../request.js';
import { type AnswerRestorer, type FitContext, type Fitted, mapCalls } from './fitted.js';
import { ObjectText } from './object-text.js';

/**
 * Models write arguments that are no object, and every later request has them in its history. Two of the protocols have
 * an object there and no text: what is none is put into one, in requests and in streams to clients that read it as one. (All
 * other answers of these protocols have whole calls, which their encoders write so.)
 */
export function fitCallArguments(
  request: ConversationRequest,
  { rules: { callArguments } }: FitContext,
): Fitted | null {
  const turns = callArguments === 'object' ? mapCalls(request.turns, withObject) : request.turns;
  const restorer = clientTraitsOf(request).objectArguments ? new CallObjects() : null;
  if (turns === request.turns) return restorer === null ? null : { request, restorer };
  return { request: { ...request, turns }, restorer };
}

function withObject(call: ToolCallPart): ToolCallPart {
  return call.custom || isObjectText(call.input) ? call : { ...call, input: objectArguments(call.input) };
}

/** The end of a call whose object has broken off. */
interface BrokenCall {
  readonly rest: string;
  readonly end: Extract<StreamEvent, { readonly kind: 'callEnd' }>;
}

class CallObjects implements AnswerRestorer {
  readonly changesText = false;
  /** Of the call that is open. */
  #text: ObjectText | null = null;
  #broken: BrokenCall | null = null;

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'usage') {
      out.push(event);
      return;
    }
    if (this.#broken !== null) this.#endBroken(this.#broken, event, out);
    if (event.kind === 'callStart' && !event.custom) {
      this.#text = new ObjectText();
      out.push(event);
    } else if (event.kind === 'callArguments' && this.#text !== null) {
      const text = this.#text.add(event.text);
      if (text !== '') out.push({ ...event, text });
    } else if (event.kind === 'callEnd' && this.#text !== null) {
      const { rest, isBroken } = this.#text.end();
      this.#text = null;
      if (isBroken) {
        this.#broken = { rest, end: event };
        return;
      }
      if (rest !== '')
        out.push({ kind: 'callArguments', choice: event.choice, call: event.call, text: rest });
      out.push(event);
    } else out.push(event);
  }

  /** Whole calls are written by the encoder, which leaves out one that is cut. */
  answer(answer: Answer): Answer {
    return answer;
  }

  /** An answer that met its limit inside a call stays cut, so that nobody takes the call for what the model meant. */
  #endBroken({ rest, end }: BrokenCall, next: StreamEvent, out: StreamEvent[]): void {
    this.#broken = null;
    const isCut = next.kind === 'error' || (next.kind === 'finish' && next.reason === 'length');
    if (!isCut) out.push({ kind: 'callArguments', choice: end.choice, call: end.call, text: rest });
    out.push(end);
  }
}
