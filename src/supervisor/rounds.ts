/** What came of a round. */
interface RoundOutcome<Child, Answer> {
  readonly number: number;
  /** In the order in which they came. */
  readonly answers: readonly Answer[];
  /** Those that have not answered in time. */
  readonly missing: readonly Child[];
}

interface OpenRound<Child, Answer> {
  readonly number: number;
  readonly answers: Answer[];
  /** Those that have not answered yet. */
  readonly missing: Set<Child>;
  readonly end: () => void;
}

/** Something that several processes are told or asked, and answer one by one. Each answers in the order in which it was asked. */
export class Rounds<Child, Answer> {
  #last = 0;
  readonly #open = new Set<OpenRound<Child, Answer>>();

  /**
   * @param ask tells them, under a number with which they answer. @returns whom it has told
   * @param mostMs how long answers are waited for; until the last one unless given
   * @returns resolves when all have answered or are gone, or when the time is over
   */
  begin(
    ask: (number: number) => readonly Child[],
    mostMs: number | null = null,
  ): Promise<RoundOutcome<Child, Answer>> {
    this.#last += 1;
    const number = this.#last;
    const missing = new Set(ask(number));
    return new Promise((resolve) => {
      const answers: Answer[] = [];
      const end = (): void => {
        if (timer !== null) clearTimeout(timer);
        this.#open.delete(round);
        resolve({ number, answers, missing: [...missing] });
      };
      const timer = mostMs === null ? null : setTimeout(end, mostMs);
      const round = { number, answers, missing, end };
      this.#open.add(round);
      if (missing.size === 0) end();
    });
  }

  /** A process has answered the round of this number: those before it are answered with it. */
  onAnswer(child: Child, number: number, answer: Answer): void {
    for (const round of [...this.#open]) {
      if (round.number > number || !round.missing.delete(child)) continue;
      round.answers.push(answer);
      if (round.missing.size === 0) round.end();
    }
  }

  /** A process is gone: nobody waits for it any more. */
  onGone(child: Child): void {
    for (const round of [...this.#open])
      if (round.missing.delete(child) && round.missing.size === 0) round.end();
  }
}
