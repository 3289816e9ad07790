/** Something that is told to several, who confirm it one by one; a later telling takes the place of one before. */
export interface Rounds<Member> {
  /** Of the last round, from 1 on; 0 before there was one. */
  readonly number: number;
  /**
   * Begins a round. Whoever waits for the one before waits no longer than for this one.
   * @returns resolves when every member has answered, or is gone, with the first problem that one of them told, or null
   */
  begin(members: Iterable<Member>): Promise<string | null>;
  /**
   * A member has answered in the last round, or is gone.
   * @param problem why it has not done what it was told
   */
  confirm(member: Member, problem?: string | null): void;
}

/** Rounds among members that are told apart by identity. */
export function createRounds<Member>(): Rounds<Member> {
  const open = new Set<Member>();
  let waiting: ((problem: string | null) => void)[] = [];
  let number = 0;
  let found: string | null = null;

  const settle = (): void => {
    const settled = waiting;
    waiting = [];
    for (const resolve of settled) resolve(found);
  };

  return {
    get number() {
      return number;
    },
    begin(members) {
      number += 1;
      found = null;
      open.clear();
      for (const member of members) open.add(member);
      const ended = new Promise<string | null>((resolve) => waiting.push(resolve));
      if (open.size === 0) settle();
      return ended;
    },
    confirm(member, problem = null) {
      if (!open.delete(member)) return;
      found ??= problem;
      if (open.size === 0) settle();
    },
  };
}
