/** One sequence, and how much of it the text ends with (Knuth, Morris and Pratt's automaton). */
class Matcher {
  readonly sequence: string;
  /** Characters of the sequence that the text ends with. */
  matched = 0;
  /** For each prefix of the sequence, the longest other one that it ends with. */
  readonly #fallback: Uint32Array;

  constructor(sequence: string) {
    this.sequence = sequence;
    this.#fallback = new Uint32Array(sequence.length);
    let length = 0;
    for (let at = 1; at < sequence.length; at++) {
      while (length > 0 && sequence[at] !== sequence[length]) length = this.#fallback[length - 1] as number;
      if (sequence[at] === sequence[length]) length++;
      this.#fallback[at] = length;
    }
  }

  /** @returns true where the sequence has been met */
  step(code: number): boolean {
    while (this.matched > 0 && this.sequence.charCodeAt(this.matched) !== code)
      this.matched = this.#fallback[this.matched - 1] as number;
    if (this.sequence.charCodeAt(this.matched) === code) this.matched++;
    return this.matched === this.sequence.length;
  }
}

/**
 * Looks for the first of some sequences in a text that comes in pieces, and holds back no more than what may be the
 * beginning of one. Of two that end at once the longer one is met.
 */
export class StopText {
  /** The sequence that was met, or null. */
  met: string | null = null;
  readonly #matchers: readonly Matcher[];
  /** What the longest beginning of a sequence is held back of. */
  #held = '';

  /** @param sequences none of them empty */
  constructor(sequences: readonly string[]) {
    this.#matchers = sequences.map((sequence) => new Matcher(sequence));
  }

  /** @returns what can be passed on now of the text up to the sequence */
  add(piece: string): string {
    if (this.met !== null) return '';
    const text = this.#held + piece;
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at);
      for (const matcher of this.#matchers)
        if (matcher.step(code) && matcher.sequence.length > (this.met?.length ?? 0))
          this.met = matcher.sequence;
      if (this.met === null) continue;
      this.#held = '';
      return text.slice(0, text.length - piece.length + at + 1 - this.met.length);
    }
    const held = this.#matchers.reduce((most, { matched }) => Math.max(most, matched), 0);
    this.#held = text.slice(text.length - held);
    return text.slice(0, text.length - held);
  }

  /** The text has ended, or something else has come in between. @returns what was held back */
  end(): string {
    const held = this.#held;
    this.#held = '';
    for (const matcher of this.#matchers) matcher.matched = 0;
    return held;
  }
}
