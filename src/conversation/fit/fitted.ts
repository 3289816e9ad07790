import type { Answer, AnswerPart } from '../answer.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { StreamEvent } from '../events.js';
import type { LeftOut } from '../left-out.js';
import type { AssistantPart, ConversationRequest, ToolCallPart, Turn } from '../request.js';

/** Makes an answer again what the client expects, after its request was changed. One for each attempt. */
export interface AnswerRestorer {
  /** Texts may come out otherwise than they went in, or with something else; else they need not be decoded on their way. */
  readonly changesText: boolean;
  /**
   * Takes the events of a stream in their order (`stream/sequence.ts`).
   * @param out where those go that the client is to get
   */
  event(event: StreamEvent, out: StreamEvent[]): void;
  answer(answer: Answer): Answer;
}

/** A request as a target can take it. */
export interface Fitted {
  readonly request: ConversationRequest;
  /** Null where the answer is right as it comes. */
  readonly restorer: AnswerRestorer | null;
}

/** What a request is changed for. */
export interface FitContext {
  /** Of the target's protocol. */
  readonly rules: RequestRules;
  /** Of the target. */
  readonly options: TargetOptions;
  /** Is told what the request loses. */
  readonly leftOut: LeftOut;
}

/**
 * One change of a request, for one thing that a target does not know.
 * @returns null where nothing has to be changed, neither in the request nor in its answer
 */
export type Fit = (request: ConversationRequest, context: FitContext) => Fitted | null;

/** The answer with each part of its choices changed. */
export function mapParts(answer: Answer, change: (part: AnswerPart, choice: number) => AnswerPart): Answer {
  const choices = answer.choices.map((choice, index) => ({
    ...choice,
    parts: choice.parts.map((part) => change(part, index)),
  }));
  return { ...answer, choices };
}

/** The turn with each call of the assistant's changed; the same one where none is. */
export function withCalls<Of extends Turn>(turn: Of, change: (call: ToolCallPart) => ToolCallPart): Of {
  if (turn.role !== 'assistant') return turn;
  let parts: AssistantPart[] | null = null;
  for (let index = 0; index < turn.parts.length; index++) {
    const part = turn.parts[index] as AssistantPart;
    const changed = part.kind === 'toolCall' ? change(part) : part;
    if (changed === part) continue;
    parts ??= [...turn.parts];
    parts[index] = changed;
  }
  return parts === null ? turn : { ...turn, parts };
}

/** The same of all turns. */
export function mapCalls(
  turns: readonly Turn[],
  change: (call: ToolCallPart) => ToolCallPart,
): readonly Turn[] {
  const changed = turns.map((turn) => withCalls(turn, change));
  return changed.some((turn, index) => turn !== turns[index]) ? changed : turns;
}

/** Whether an answer has a part of reasoning: most have none, and then nothing of them is to be moved. */
export function hasReasoning({ choices }: Answer): boolean {
  for (const { parts } of choices) for (const { kind } of parts) if (kind === 'reasoning') return true;
  return false;
}
