/** A tool call of a model. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as far as received. */
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
 * The calls that a turn answers. A text after tool calls is sent as the result of each of them, since no protocol accepts
 * anything else there.
 */
export function callsAnsweredBy(turns: readonly Turn[], index: number): readonly ToolCall[] {
  const before = turns[index - 1];
  return turns[index]?.role === 'user' && before?.role === 'assistant' ? before.calls : [];
}
