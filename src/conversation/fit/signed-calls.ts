import { randomBytes } from 'node:crypto';
import type { Answer, AnswerPart } from '../answer.js';
import { carryBeside, carryInId } from '../carrying-id.js';
import { clientTraits } from '../client-traits.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { StreamEvent } from '../events.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, ToolCallPart } from '../request.js';
import { signatureFor, withoutWords } from '../signature.js';
import { unsignedReasoning } from '../unsigned-reasoning.js';
import type { AnswerRestorer, Fitted } from './fitted.js';
import { mapParts } from './parts.js';

/**
 * Clients without a field for the signatures that upstreams want to see again beside the calls of a tool loop have the
 * calls carry them, see `carrying-id.ts`. Reasoning that such a client sends along is for upstreams of its own protocol.
 */
export function fitSignedCalls(
  request: ConversationRequest,
  { reasoning }: RequestRules,
  _target: TargetOptions,
  leftOut: LeftOut,
): Fitted | null {
  if (clientTraits[request.from].signatures === 'field' || reasoning === 'unsigned') return null;
  for (const turn of request.turns) {
    if (turn.role !== 'assistant') continue;
    for (const part of turn.parts) {
      const own = part.kind === 'reasoning' ? unsignedReasoning(part, '') : null;
      if (own !== null) leftOut.add(own.name);
    }
  }
  return reasoning === 'signed' ? { request, restorer: new SignedCalls() } : null;
}

type Call = Pick<ToolCallPart, 'id' | 'signature'>;

/** Moves the signatures of reasoning to the call that comes next. */
class SignedCalls implements AnswerRestorer {
  readonly changesText = false;
  /** Tokens of each choice that no call carries yet. */
  readonly #waiting = new Map<number, string[]>();

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'signature') this.#wait(event.choice, event.signature);
    else if (event.kind === 'callStart') out.push({ ...event, ...this.#carrying(event.choice, event.id) });
    else {
      if (event.kind === 'text') this.#passText(event.choice);
      out.push(event);
    }
  }

  answer(answer: Answer): Answer {
    return mapParts(answer, (part, choice) => this.#restored(part, choice));
  }

  #restored(part: AnswerPart, choice: number): AnswerPart {
    if (part.kind === 'toolCall') return { ...part, ...this.#carrying(choice, part.id) };
    if (part.kind === 'text') this.#passText(choice);
    if (part.kind === 'reasoning' && part.signature !== null) this.#wait(choice, part.signature);
    return part;
  }

  #wait(choice: number, token: string): void {
    const waiting = this.#waiting.get(choice);
    if (waiting === undefined) this.#waiting.set(choice, [token]);
    else waiting.push(token);
  }

  /** A generateContent upstream signs a part: what stood on a text is not for the call behind it. */
  #passText(choice: number): void {
    const waiting = this.#waiting.get(choice);
    if (waiting === undefined) return;
    const others = waiting.filter((token) => signatureFor('generateContent', token) === null);
    if (others.length < waiting.length) this.#waiting.set(choice, others);
  }

  #carrying(choice: number, givenId: string): Call {
    const tokens = this.#waiting.get(choice) ?? [];
    this.#waiting.delete(choice);
    if (tokens.length === 0) return { id: givenId };
    const id = givenId === '' ? `call_${randomBytes(12).toString('hex')}` : givenId;
    // An id always comes back, and the field beside it from some clients. Without their words tokens are of use where
    // the client returns those.
    return carriedBy(id, tokens) ?? carriedBy(id, tokens.map(withoutWords)) ?? { id };
  }
}

/** The call with the tokens in its id or, where they are too long for that, beside it; null where they are for both. */
function carriedBy(id: string, tokens: readonly string[]): Call | null {
  const carrying = carryInId(id, tokens);
  if (carrying !== null) return { id: carrying };
  const signature = carryBeside(tokens);
  return signature === null ? null : { id, signature };
}
