import { isObjectText } from '../../wire/json.js';
import type { Answer, StreamEvent } from '../answer.js';
import { clientTraitsOf } from '../client-traits.js';
import type { ConversationRequest, ToolCallPart } from '../request.js';
import { objectArguments } from '../tool-calls.js';
import { type AnswerRestorer, type FitContext, type Fitted, mapCalls } from './fitted.js';
import { ObjectText } from './object-text.js';

/**
 * Models sometimes write arguments that are not an object, and every later request has them in its history. Two of the
 * protocols require an object there, not text. Other arguments are wrapped in one, in requests and in streams to
 * clients that read an object. Whole calls in all other answers of these protocols are wrapped by their encoders.
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

/** The end of a call whose object is incomplete. */
interface BrokenCall {
  readonly rest: string;
  readonly end: Extract<StreamEvent, { readonly kind: 'callEnd' }>;
}

class CallObjects implements AnswerRestorer {
  readonly changesText = false;
  /** Arguments of the open call. */
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

  /** The encoder writes whole calls. It leaves out one that is truncated. */
  answer(answer: Answer): Answer {
    return answer;
  }

  /**
   * If the answer reached its token limit within a call, the call stays incomplete, so that it is not mistaken for what
   * the model meant.
   */
  #endBroken({ rest, end }: BrokenCall, next: StreamEvent, out: StreamEvent[]): void {
    this.#broken = null;
    const isCut = next.kind === 'error' || (next.kind === 'finish' && next.reason === 'length');
    if (!isCut) out.push({ kind: 'callArguments', choice: end.choice, call: end.call, text: rest });
    out.push(end);
  }
}
