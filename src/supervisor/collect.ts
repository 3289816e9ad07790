/** How long a worker may take to answer: one that is stuck must not hold up the page of all others. */
const answerMs = 1000;

export interface Collector<Child, Part> {
  /** Asks every process. @returns what those said that answered in time */
  collect(): Promise<readonly Part[]>;
  /** Hears of an answer. */
  onPart(child: Child, id: number, part: Part): void;
  /** A process is gone: nobody waits for it any more. */
  onGone(child: Child): void;
}

interface Question<Child, Part> {
  readonly waiting: Set<Child>;
  readonly parts: Part[];
  readonly settle: () => void;
}

/**
 * Puts one question to all processes at a time.
 * @param ask sends the question, and says to whom
 */
export function createCollector<Child, Part>(ask: (id: number) => readonly Child[]): Collector<Child, Part> {
  const open = new Map<number, Question<Child, Part>>();
  let count = 0;

  const drop = (question: Question<Child, Part>, child: Child): void => {
    if (question.waiting.delete(child) && question.waiting.size === 0) question.settle();
  };

  return {
    collect: () =>
      new Promise((resolve) => {
        const id = ++count;
        const parts: Part[] = [];
        const settle = (): void => {
          clearTimeout(timer);
          open.delete(id);
          resolve(parts);
        };
        const timer = setTimeout(settle, answerMs);
        const waiting = new Set(ask(id));
        open.set(id, { waiting, parts, settle });
        if (waiting.size === 0) settle();
      }),
    onPart(child, id, part) {
      const question = open.get(id);
      if (question === undefined || !question.waiting.has(child)) return;
      question.parts.push(part);
      drop(question, child);
    },
    onGone(child) {
      for (const question of [...open.values()]) drop(question, child);
    },
  };
}
