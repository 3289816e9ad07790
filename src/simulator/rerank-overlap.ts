const shareOfMatches = 0.9;
/** A word's parts of three letters: two forms of a word have most of them in common. */
const partLength = 3;

/**
 * How much of a query's words stand in a document, from 0 to 1: a word counts by the share of its parts that some
 * word of the document has. Of two documents with the same matches the shorter one comes first.
 */
export function overlap(query: string, document: string): number {
  const asked = wordsOf(query);
  const there = wordsOf(document);
  if (asked.length === 0 || there.length === 0) {
    return 0;
  }
  const partsThere = new Set(there.flatMap(partsOf));
  const matches = asked.reduce((sum, word) => sum + shareIn(partsOf(word), partsThere), 0) / asked.length;
  const density = shareIn(there.flatMap(partsOf), new Set(asked.flatMap(partsOf)));
  return Math.round(1e6 * (shareOfMatches * matches + (1 - shareOfMatches) * density)) / 1e6;
}

function shareIn(parts: readonly string[], others: ReadonlySet<string>): number {
  return parts.filter((part) => others.has(part)).length / parts.length;
}

function wordsOf(text: string): readonly string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

function partsOf(word: string): readonly string[] {
  const bounded = `^${word}$`;
  const count = Math.max(1, bounded.length - partLength + 1);
  return Array.from({ length: count }, (_, at) => bounded.slice(at, at + partLength));
}
