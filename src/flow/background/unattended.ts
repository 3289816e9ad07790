/** Work that is carried to its end whether or not its client stays. */
export interface Unattended {
  add(work: Promise<void>): void;
  /** Resolves when nothing is under way. */
  ended(): Promise<void>;
}

/** Keeps account of such work. Each piece of it must end by itself. */
export function createUnattended(): Unattended {
  const running = new Set<Promise<void>>();
  return {
    add(work) {
      const ended = work.then(
        () => {},
        () => {},
      );
      running.add(ended);
      void ended.then(() => running.delete(ended));
    },
    async ended() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
