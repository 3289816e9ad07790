interface RoundOutcome<Child, Answer> {
  readonly number: number;
  /** In the order of arrival. */
  readonly answers: readonly Answer[];
  /** Processes that did not answer in time. */
  readonly missing: readonly Child[];
}

interface OpenRound<Child, Answer> {
  readonly number: number;
  readonly answers: Answer[];
  /** Processes that have not answered yet. */
  readonly missing: Set<Child>;
  readonly end: () => void;
}

/** Requests to several processes, each of which answers them in order. */
export class Rounds<Child, Answer> {
  #last = 0;
  readonly #open = new Set<OpenRound<Child, Answer>>();

  /**
   * @param ask sends the request, with the number to answer with, and returns the processes it was sent to
   * @param mostMs longest wait for answers. Without it, the round waits for the last one.
   * @returns resolves when all have answered or exited, or when the time is over
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

  /** Records a process's answer to a round. It also answers earlier rounds. */
  onAnswer(child: Child, number: number, answer: Answer): void {
    for (const round of [...this.#open]) {
      if (round.number > number || !round.missing.delete(child)) continue;
      round.answers.push(answer);
      if (round.missing.size === 0) round.end();
    }
  }

  /** Called when a process has exited. No round waits for it any longer. */
  onGone(child: Child): void {
    for (const round of [...this.#open])
      if (round.missing.delete(child) && round.missing.size === 0) round.end();
  }
}
