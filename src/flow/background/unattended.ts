/** Work that runs to its end even if its client disconnects. */
export interface Unattended {
  add(work: Promise<void>): void;
  /** Resolves when no work is in flight. */
  ended(): Promise<void>;
}

/** Tracks such work. Each piece of it must end on its own. */
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
