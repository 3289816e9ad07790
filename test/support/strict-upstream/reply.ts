/** A call of a tool that a scripted model makes. */
export interface ReplyCall {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Free text for a custom tool. */
  readonly args: object | string;
}

/** What a scripted model says. */
export interface Reply {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ReplyCall[];
  /** The connection breaks in the middle of the answer. */
  readonly isCut?: boolean;
  /** The answer is 429, as each vendor writes it. */
  readonly isLimited?: boolean;
}

/** An answer's bytes: a whole JSON body, or the events of a stream. */
export interface Written {
  readonly body: object;
  readonly events: readonly string[];
}

/** A text in pieces, as a model streams it. */
export function pieces(text: string): readonly string[] {
  const half = Math.ceil(text.length / 2);
  return text.length < 2 ? [text] : [text.slice(0, half), text.slice(half)];
}
