/** A tool call of a scripted model. */
export interface ReplyCall {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Free text for a custom tool. */
  readonly args: object | string;
}

/** What a scripted model answers. */
export interface Reply {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ReplyCall[];
  /** The connection breaks in the middle of the answer. */
  readonly isCut?: boolean;
  /** The answer is a 429 in each vendor's form. */
  readonly isLimited?: boolean;
}

/** The bytes of an answer: a whole JSON body, or the events of a stream. */
export interface Written {
  readonly body: object;
  readonly events: readonly string[];
}

/** Splits a text into pieces, as a model streams it. */
export function pieces(text: string): readonly string[] {
  const half = Math.ceil(text.length / 2);
  return text.length < 2 ? [text] : [text.slice(0, half), text.slice(half)];
}
