/** Something that is told to several, who confirm it one by one; a later telling takes the place of one before. */
export interface Rounds<Member> {
  /** Of the last round, from 1 on; 0 before there was one. */
  readonly number: number;
  /**
   * Begins a round. Whoever waits for the one before waits no longer than for this one.
   * @returns resolves when every member has confirmed, or is gone
   */
  begin(members: Iterable<Member>): Promise<void>;
  /** A member has confirmed the last round, or is gone. */
  confirm(member: Member): void;
}

/** @param onEnd hears of each round that every member has confirmed */
export function createRounds<Member>(onEnd: () => void): Rounds<Member> {
  const open = new Set<Member>();
  let waiting: (() => void)[] = [];
  let number = 0;

  const settle = (): void => {
    const settled = waiting;
    waiting = [];
    for (const resolve of settled) resolve();
  };

  return {
    get number() {
      return number;
    },
    begin(members) {
      number += 1;
      open.clear();
      for (const member of members) open.add(member);
      const ended = new Promise<void>((resolve) => waiting.push(resolve));
      if (open.size === 0) settle();
      return ended;
    },
    confirm(member) {
      if (!open.delete(member) || open.size > 0) return;
      onEnd();
      settle();
    },
  };
}
