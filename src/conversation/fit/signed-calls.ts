import { randomBytes } from 'node:crypto';
import { entryOf } from '../../wire/entry-of.js';
import type { Answer, AnswerPart, StreamEvent } from '../answer.js';
import { carryBeside, carryInId, markWithoutReasoning, mostTokens } from '../carrying-id.js';
import { clientTraitsOf } from '../client-traits.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, ReasoningPart, ToolCallPart } from '../request.js';
import { isOfPart, withoutWords } from '../signature.js';
import { isOfDetails, mostCarried, unsignedReasoning } from '../unsigned-reasoning.js';
import { type AnswerRestorer, type FitContext, type Fitted, hasReasoning } from './fitted.js';

/**
 * Some clients have no member for the signatures that upstreams need beside the calls of a tool loop, or would not
 * return it. For these, the calls carry the signatures: see `carrying-id.ts`.
 */
export function fitSignedCalls(
  request: ConversationRequest,
  { rules: { reasoning }, leftOut }: FitContext,
): Fitted | null {
  const { signatures } = clientTraitsOf(request);
  if (signatures === 'shown') {
    // Its vendor refuses a budget for thinking beside calls which no thinking led to.
    const marksOthers = request.reasoning !== null && request.reasoning.budget !== null;
    const inField = request.reasoning?.show === true ? 'shown' : 'tooLong';
    return { request, restorer: new SignedCalls(inField, marksOthers) };
  }
  if (signatures === 'unreturned') return { request, restorer: new SignedCalls('tooLong') };
  if (signatures === 'field' || reasoning === 'unsigned') return null;
  nameTexts(request, leftOut);
  // The older form of calls has no id.
  return request.functionForm === true ? null : { request, restorer: new SignedCalls('none') };
}

/** The text of reasoning that such a client sends is only for upstreams of its own protocol. */
function nameTexts({ turns }: ConversationRequest, leftOut: LeftOut): void {
  for (const turn of turns) {
    if (turn.role !== 'assistant') continue;
    for (const part of turn.parts) {
      const own = part.kind === 'reasoning' ? unsignedReasoning(part, '') : null;
      if (own !== null) leftOut.add(own.name);
    }
  }
}

type Call = Pick<ToolCallPart, 'id' | 'signature'>;

/**
 * Which signatures are put in the client's member: those too long for an id; those too, and those after shown reasoning
 * or before a text of the answer; or none, since the protocol has no such member.
 */
type InField = 'tooLong' | 'shown' | 'none';

/**
 * Maximum number of characters of tokens that wait for a call: enough for the words that they may contain, encoded as
 * base64 twice.
 */
const longestWaiting = 8 * mostCarried;

/** Tokens of a choice that no call carries yet. */
interface Waiting {
  tokens: string[];
  characters: number;
  /** Whether there were more than a call can carry, so that it carries none. */
  isOver: boolean;
}

const nothingWaiting = (): Waiting => ({ tokens: [], characters: 0, isOver: false });

const none: readonly string[] = [];

/** Moves signatures of reasoning to the next call. */
class SignedCalls implements AnswerRestorer {
  readonly #waiting = new Map<number, Waiting>();
  /** Choices with reasoning text whose signature has not arrived. */
  readonly #shown = new Set<number>();
  /** Choices with a call. */
  readonly #called = new Set<number>();
  /** Choices with reasoning, which a token shows. */
  readonly #reasoned = new Set<number>();
  readonly #inField: InField;
  readonly #marksOthers: boolean;

  /** @param marksOthers the first call of an answer without reasoning is marked as such */
  constructor(inField: InField, marksOthers = false) {
    this.#inField = inField;
    this.#marksOthers = marksOthers;
  }

  /** Texts matter while tokens wait: they decide where these belong. */
  get changesText(): boolean {
    return this.#waiting.size > 0 || this.#shown.size > 0;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    switch (event.kind) {
      case 'signature':
        if (this.#shown.delete(event.choice)) out.push(event);
        else this.#pushField(event.choice, this.#wait(event.choice, event.signature), out);
        return;
      case 'callStart': {
        const { tokens, call } = this.#carrying(event.choice, event.id);
        this.#pushField(event.choice, tokens, out);
        out.push({ ...event, ...call });
        return;
      }
      case 'reasoning':
        if (this.#inField === 'shown' && event.text !== '') {
          this.#shown.add(event.choice);
          this.#reasoned.add(event.choice);
        }
        break;
      case 'text':
        if (this.#shown.size > 0) this.#shown.delete(event.choice);
        if (this.#waiting.size > 0) this.#pushField(event.choice, this.#pass(event.choice), out);
        break;
      case 'finish':
        this.#pushField(event.choice, this.#late(event.choice), out);
    }
    out.push(event);
  }

  answer(answer: Answer): Answer {
    if (!hasReasoning(answer) && !this.#marksOthers) return answer;
    const choices = answer.choices.map((choice, index) => ({
      ...choice,
      parts: [
        ...choice.parts.flatMap((part) => this.#restored(part, index)),
        ...(this.#inField === 'none' ? [] : this.#late(index).map(signatureAlone)),
      ],
    }));
    return { ...answer, choices };
  }

  #restored(part: AnswerPart, choice: number): AnswerPart | AnswerPart[] {
    if (part.kind === 'toolCall') {
      const { tokens, call } = this.#carrying(choice, part.id);
      return [...tokens.map(signatureAlone), { ...part, ...call }];
    }
    if (part.kind === 'text') return [...this.#pass(choice).map(signatureAlone), part];
    if (part.kind !== 'reasoning') return part;
    const isShown = this.#inField === 'shown' && part.text !== '';
    if (isShown) this.#reasoned.add(choice);
    if (isShown || part.signature === null) return part;
    const told = this.#wait(choice, part.signature).map(signatureAlone);
    return this.#inField === 'none' ? part : [{ ...part, signature: null }, ...told];
  }

  #pushField(choice: number, tokens: readonly string[], out: StreamEvent[]): void {
    for (const signature of tokens) out.push({ kind: 'signature', choice, signature });
  }

  /** @returns tokens that are too many for a call, for the client's member, if there is one */
  #wait(choice: number, token: string): readonly string[] {
    const waiting = entryOf(this.#waiting, choice, nothingWaiting);
    if (waiting.isOver) return none;
    waiting.tokens.push(token);
    waiting.characters += token.length;
    if (waiting.tokens.length <= mostTokens && waiting.characters <= longestWaiting) return none;
    if (this.#inField === 'none') {
      this.#waiting.set(choice, { tokens: [], characters: 0, isOver: true });
      return none;
    }
    this.#waiting.delete(choice);
    return waiting.tokens;
  }

  /**
   * Called before a text. A signature of a part does not belong to the call after it.
   * @returns the tokens for the client's member
   */
  #pass(choice: number): readonly string[] {
    const waiting = this.#waiting.get(choice);
    if (waiting === undefined) return none;
    const { tokens } = waiting;
    const isKept = (token: string) => this.#inField !== 'shown' && !isOfPart(token);
    const kept = tokens.filter(isKept);
    if (kept.length === 0 && !waiting.isOver) this.#waiting.delete(choice);
    else {
      waiting.tokens = kept;
      waiting.characters = kept.reduce((sum, token) => sum + token.length, 0);
    }
    return this.#inField === 'shown' ? tokens : none;
  }

  /**
   * Called at the end of a choice.
   * @returns what has arrived after its last call, for the client's member: details that a chat upstream needs back, whatever the
   * client asked for. Others refuse reasoning with nothing after it. A stream without such a member reports the loss
   */
  #late(choice: number): readonly string[] {
    const tokens = this.#waiting.get(choice)?.tokens ?? none;
    if (this.#inField === 'none') return tokens;
    return this.#called.has(choice) ? tokens.filter(isOfDetails) : none;
  }

  /** @returns the call, and tokens that must precede it in the member of the client's protocol */
  #carrying(choice: number, givenId: string): { readonly tokens: readonly string[]; readonly call: Call } {
    const tokens = this.#waiting.get(choice)?.tokens ?? none;
    this.#waiting.delete(choice);
    const isMarked = this.#marksOthers && !this.#called.has(choice) && !this.#reasoned.has(choice);
    this.#called.add(choice);
    if (tokens.length === 0 && !isMarked) return { tokens, call: { id: givenId } };
    const id = givenId === '' ? `call_${randomBytes(12).toString('hex')}` : givenId;
    if (tokens.length === 0) return { tokens, call: { id: markWithoutReasoning(id) } };
    if (this.#inField !== 'none') {
      const carrying = carryInId(id, tokens);
      return carrying === null ? { tokens, call: { id } } : { tokens: [], call: { id: carrying } };
    }
    // Clients always return the id, and some the member beside it. Tokens without their words are useful if the client
    // returns the words.
    const call = carriedBy(id, tokens) ?? carriedBy(id, tokens.map(withoutWords)) ?? { id };
    return { tokens: [], call };
  }
}

function signatureAlone(signature: string): ReasoningPart {
  return { kind: 'reasoning', text: '', signature };
}

/**
 * Returns the call with the tokens in its id, or beside it if they are too long for that. Null if they are too long for
 * both.
 */
function carriedBy(id: string, tokens: readonly string[]): Call | null {
  const carrying = carryInId(id, tokens);
  if (carrying !== null) return { id: carrying };
  const signature = carryBeside(tokens);
  return signature === null ? null : { id, signature };
}
