import type { Answer, AnswerPart } from '../answer.js';
import { clientTraits } from '../client-traits.js';
import type { RequestRules } from '../codec.js';
import type { StreamEvent } from '../events.js';
import type { ConversationRequest } from '../request.js';
import { signatureFor } from '../signature.js';
import { mostCarried, withText } from '../unsigned-reasoning.js';
import type { AnswerRestorer, Fitted } from './fitted.js';
import { mapParts } from './parts.js';

/**
 * Reasoning without a signature has to come back to its upstream. A client that sees it returns it as text; one that did
 * not ask for it, or leaves it out of its history, carries it inside its token.
 */
export function fitHiddenReasoning(request: ConversationRequest, { reasoning }: RequestRules): Fitted {
  const { from } = request;
  const { signatures, returnsReasoning } = clientTraits[from];
  const keepsText = returnsReasoning && request.reasoning?.show === true;
  if (reasoning !== 'unsigned' || signatures === 'call' || keepsText) return { request, restorer: null };
  return { request, restorer: new HiddenReasoning() };
}

/** Puts reasoning into the token that follows it. */
class HiddenReasoning implements AnswerRestorer {
  readonly changesText = false;
  /** Of each choice, until its token comes. */
  readonly #texts = new Map<number, string>();
  #carried = 0;

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'reasoning') {
      const text = this.#bounded(event.text);
      this.#texts.set(event.choice, (this.#texts.get(event.choice) ?? '') + text);
      out.push(event);
    } else if (event.kind === 'signature' && signatureFor('chat', event.signature) !== null) {
      const text = this.#texts.get(event.choice) ?? '';
      this.#texts.delete(event.choice);
      out.push({ ...event, signature: withText(event.signature, text) });
    } else out.push(event);
  }

  answer(answer: Answer): Answer {
    return mapParts(answer, (part) => this.#restored(part));
  }

  #restored(part: AnswerPart): AnswerPart {
    if (part.kind !== 'reasoning' || part.signature === null) return part;
    return { ...part, signature: withText(part.signature, this.#bounded(part.text)) };
  }

  /** As much of a text as may still be carried. */
  #bounded(text: string): string {
    const taken = text.slice(0, mostCarried - this.#carried);
    this.#carried += taken.length;
    return taken;
  }
}
