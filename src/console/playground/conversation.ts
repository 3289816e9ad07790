/** A call of a tool that a model asked for. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as far as it has come. */
  readonly arguments: string;
}

interface UserTurn {
  readonly role: 'user';
  readonly text: string;
}

export interface AssistantTurn {
  readonly role: 'assistant';
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

export type Turn = UserTurn | AssistantTurn;

/**
 * The calls that a turn answers: a text that follows calls of tools is taken as the result of each of them, since no
 * protocol takes anything else there.
 */
export function callsAnsweredBy(turns: readonly Turn[], index: number): readonly ToolCall[] {
  const before = turns[index - 1];
  return turns[index]?.role === 'user' && before?.role === 'assistant' ? before.calls : [];
}
