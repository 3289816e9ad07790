const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** How far a JSON object or array has come whose text arrives in fragments. */
export interface JsonProgress {
  depth: number;
  inString: boolean;
  escaped: boolean;
  /** The outermost bracket has closed. */
  complete: boolean;
}

export function jsonStart(): JsonProgress {
  return { depth: 0, inString: false, escaped: false, complete: false };
}

/** Goes on over the next fragment, without keeping any of it. Brackets are counted, the rest is not checked. */
export function advance(progress: JsonProgress, fragment: string): void {
  for (let at = 0; at < fragment.length && !progress.complete; at++) {
    const code = fragment.charCodeAt(at);
    if (progress.inString) {
      if (progress.escaped) progress.escaped = false;
      else if (code === BACKSLASH) progress.escaped = true;
      else if (code === QUOTE) progress.inString = false;
    } else if (code === QUOTE) {
      progress.inString = true;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      progress.depth++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      progress.depth--;
      progress.complete = progress.depth <= 0;
    }
  }
}
