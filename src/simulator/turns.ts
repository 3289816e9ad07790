/** What several iterators give, one of each in turn; those that have ended are left out. */
export function* inTurns<T>(all: readonly Iterator<T>[]): Generator<T> {
  let open = all;
  while (open.length > 0) {
    const still: Iterator<T>[] = [];
    for (const each of open) {
      const next = each.next();
      if (next.done !== true) {
        yield next.value;
        still.push(each);
      }
    }
    open = still;
  }
}

/** What several iterators give, one after the other. */
export function* inOrder<T>(all: readonly Iterable<T>[]): Generator<T> {
  for (const each of all) {
    yield* each;
  }
}
