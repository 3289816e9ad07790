import type { Answer, AnswerPart, StreamEvent } from '../answer.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { AssistantPart, ConversationRequest, ToolCallPart, Turn } from '../request.js';

/** Reverses in an answer what was changed in its request. One per attempt. */
export interface AnswerRestorer {
  /** Whether texts may be changed or gain something. If false, they need not be decoded. */
  readonly changesText: boolean;
  /**
   * Handles the events of a stream in order (`stream/sequence.ts`).
   * @param out receives the events for the client
   */
  event(event: StreamEvent, out: StreamEvent[]): void;
  answer(answer: Answer): Answer;
}

/** A request that a target can accept. */
export interface Fitted {
  readonly request: ConversationRequest;
  /** Null if the answer needs no changes. */
  readonly restorer: AnswerRestorer | null;
}

/** The target for which a request is changed. */
export interface FitContext {
  /** Rules of the target's protocol. */
  readonly rules: RequestRules;
  readonly options: TargetOptions;
  /** Records what the request loses. */
  readonly leftOut: LeftOut;
}

/**
 * A change of a request for one thing that a target does not support.
 * @returns null if neither the request nor its answer needs a change
 */
export type Fit = (request: ConversationRequest, context: FitContext) => Fitted | null;

/** Returns the answer with each part of its choices changed. */
export function mapParts(answer: Answer, change: (part: AnswerPart, choice: number) => AnswerPart): Answer {
  const choices = answer.choices.map((choice, index) => ({
    ...choice,
    parts: choice.parts.map((part) => change(part, index)),
  }));
  return { ...answer, choices };
}

/** Returns the turn with each call of the assistant changed, or the same turn if none is. */
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

/** Changes the calls of all turns in this way. */
export function mapCalls(
  turns: readonly Turn[],
  change: (call: ToolCallPart) => ToolCallPart,
): readonly Turn[] {
  const changed = turns.map((turn) => withCalls(turn, change));
  return changed.some((turn, index) => turn !== turns[index]) ? changed : turns;
}

/** Returns whether an answer has reasoning. Most have none, so that nothing needs to be moved. */
export function hasReasoning({ choices }: Answer): boolean {
  for (const { parts } of choices) for (const { kind } of parts) if (kind === 'reasoning') return true;
  return false;
}
