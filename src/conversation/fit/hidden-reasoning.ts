import type { Answer, AnswerPart, StreamEvent } from '../answer.js';
import { clientTraitsOf } from '../client-traits.js';
import type { RequestRules } from '../codec.js';
import type { ConversationRequest } from '../request.js';
import { signatureFor, signedBy, withWords } from '../signature.js';
import { mostCarried, withText } from '../unsigned-reasoning.js';
import { type AnswerRestorer, type FitContext, type Fitted, hasReasoning, mapParts } from './fitted.js';

/**
 * Reasoning without a signature must be returned to its upstream. So must the words that an upstream signed, if it
 * refuses its signature beside other words or none. A client that sees them returns them as text. One that did
 * not ask for them, or that drops them from its history, returns only its token, which therefore contains them.
 */
export function fitHiddenReasoning(request: ConversationRequest, { rules }: FitContext): Fitted | null {
  const { signatures, returnsReasoning } = clientTraitsOf(request);
  const keepsText = returnsReasoning && request.reasoning?.show === true;
  const isCarried = signsWords(rules)
    ? !keepsText
    : rules.reasoning === 'unsigned' && signatures !== 'call' && !keepsText;
  return isCarried ? { request, restorer: new HiddenReasoning(rules) } : null;
}

function signsWords({ protocol }: RequestRules): boolean {
  return signedBy[protocol] === 'words';
}

/** Puts reasoning into the token that follows it. */
class HiddenReasoning implements AnswerRestorer {
  readonly changesText = false;
  /** Text of each choice until its token arrives. */
  readonly #texts = new Map<number, string>();
  /** Choices whose text is incomplete. */
  readonly #cut = new Set<number>();
  #carried = 0;
  readonly #rules: RequestRules;

  constructor(rules: RequestRules) {
    this.#rules = rules;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'reasoning') {
      const text = this.#bounded(event.text);
      if (text.length < event.text.length) this.#cut.add(event.choice);
      this.#texts.set(event.choice, (this.#texts.get(event.choice) ?? '') + text);
      out.push(event);
    } else if (event.kind === 'signature' && signatureFor(this.#rules.protocol, event.signature) !== null) {
      const text = this.#texts.get(event.choice) ?? '';
      this.#texts.delete(event.choice);
      const isWhole = !this.#cut.delete(event.choice);
      out.push({ ...event, signature: this.#carrying(event.signature, text, isWhole) });
    } else out.push(event);
  }

  answer(answer: Answer): Answer {
    return hasReasoning(answer) ? mapParts(answer, (part) => this.#restored(part)) : answer;
  }

  #restored(part: AnswerPart): AnswerPart {
    if (part.kind !== 'reasoning' || part.signature === null) return part;
    const text = this.#bounded(part.text);
    return { ...part, signature: this.#carrying(part.signature, text, text.length === part.text.length) };
  }

  #carrying(token: string, text: string, isWhole: boolean): string {
    if (!signsWords(this.#rules)) return withText(token, text);
    // Signed words are of no use if incomplete.
    return withWords(token, isWhole ? text : null);
  }

  /** As much of a text as may still be carried. */
  #bounded(text: string): string {
    const taken = text.slice(0, mostCarried - this.#carried);
    this.#carried += taken.length;
    return taken;
  }
}
