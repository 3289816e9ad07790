const openAfterMs = 10_000;

/** Delays answers until enough requests have arrived, or until ten seconds after the first of them. */
interface Gate<T> {
  add(waiting: T): void;
  remove(waiting: T): void;
}

/**
 * The slow upstream: `BENCH_GATE` (default 1,500) requests have to arrive completely before any of them is answered.
 * @param open called for each waiting request when the gate opens
 */
export function createGate<T>(open: (waiting: T) => void): Gate<T> {
  const enough = Number(process.env.BENCH_GATE ?? 1500);
  const waiting = new Set<T>();
  let timer: NodeJS.Timeout | null = null;

  const release = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    const all = [...waiting];
    waiting.clear();
    for (const one of all) open(one);
  };

  return {
    add(one) {
      waiting.add(one);
      if (waiting.size >= enough) release();
      else timer ??= setTimeout(release, openAfterMs);
    },
    remove(one) {
      waiting.delete(one);
    },
  };
}
