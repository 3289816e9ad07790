/** A process that is stuck must not hold up the operator who revokes a key. */
const mostMs = 1000;

/** Follows which processes have in force what they were told. */
export interface KeyDelivery<Child> {
  /** @param send tells something, under a number that processes answer with; says to whom it was told */
  tell(send: (number: number) => readonly Child[]): void;
  /** A process has in force what it was told under this number, and before. */
  onApplied(child: Child, number: number): void;
  /** A process is gone: nobody waits for it any more. */
  onGone(child: Child): void;
  /**
   * Waits until everything that was told before the call is in force everywhere, for a second at most.
   * @returns the processes that have not answered by then
   */
  settled(): Promise<readonly Child[]>;
}

interface Waiter<Child> {
  /** The number that each of them has yet to answer with, or a later one. */
  readonly missing: Map<Child, number>;
  readonly settle: () => void;
}

/** Every process carries out what it is told in the order in which it is told. */
export function createKeyDelivery<Child>(): KeyDelivery<Child> {
  let last = 0;
  /** What each process was told last and has not answered. */
  const open = new Map<Child, number>();
  const waiters = new Set<Waiter<Child>>();

  const drop = (child: Child, number: number): void => {
    if ((open.get(child) ?? 0) <= number) open.delete(child);
    for (const { missing, settle } of [...waiters]) {
      if ((missing.get(child) ?? Number.POSITIVE_INFINITY) > number) continue;
      missing.delete(child);
      if (missing.size === 0) settle();
    }
  };

  return {
    tell(send) {
      last += 1;
      for (const child of send(last)) open.set(child, last);
    },
    onApplied: drop,
    onGone: (child) => drop(child, last),
    settled: () =>
      new Promise((resolve) => {
        const missing = new Map(open);
        const settle = (): void => {
          clearTimeout(timer);
          waiters.delete(waiter);
          resolve([...missing.keys()]);
        };
        const timer = setTimeout(settle, mostMs);
        const waiter = { missing, settle };
        waiters.add(waiter);
        if (missing.size === 0) settle();
      }),
  };
}
