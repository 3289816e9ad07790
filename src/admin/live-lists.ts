/** Entries of each list of the console. */
const mostEntries = 200;

/** Those with the highest numbers, by name where these are equal: so that nothing moves that has not changed. */
export function most<Entry>(
  entries: Entry[],
  numberOf: (entry: Entry) => number,
  nameOf: (entry: Entry) => string,
): Entry[] {
  return entries
    .sort((a, b) => numberOf(b) - numberOf(a) || (nameOf(a) < nameOf(b) ? -1 : 1))
    .slice(0, mostEntries);
}

/** The entry of a name, made where there is none yet. */
export function entryOf<Entry>(entries: Map<string, Entry>, name: string, make: () => Entry): Entry {
  let entry = entries.get(name);
  if (entry === undefined) {
    entry = make();
    entries.set(name, entry);
  }
  return entry;
}
