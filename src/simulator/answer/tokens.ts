const charactersPerToken = 4;
const longestPiece = 32;

/** The simulator's count of tokens: one per four UTF-16 units, rounded up. Stable, and near enough to real ones. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / charactersPerToken);
}

/** The beginning of a text with at most this many tokens, never cut inside a surrogate pair. */
export function firstTokens(text: string, tokens: number): string {
  return clip(text, tokens * charactersPerToken);
}

/** The beginning of a text, at most `length` UTF-16 units, never cut inside a surrogate pair. */
export function clip(text: string, length: number): string {
  if (text.length <= length) {
    return text;
  }
  return text.slice(0, splitsPair(text, length) ? length - 1 : length);
}

/** Splits a text into words for streaming; joined they give the text. A word without spaces is split at 32 units. */
export function words(text: string): string[] {
  const found: string[] = [];
  for (const word of text.match(/\s*\S+\s*$|\s*\S+|\s+$/g) ?? []) {
    found.push(...pieces(word, longestPiece));
  }
  return found;
}

/** Splits a text into pieces of at most `size` units, never inside a surrogate pair; joined they give the text. */
export function pieces(text: string, size: number): string[] {
  if (text.length <= size) {
    return text === '' ? [] : [text];
  }
  const found: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + size, text.length);
    if (splitsPair(text, end) && end - 1 > start) {
      end -= 1;
    }
    found.push(text.slice(start, end));
    start = end;
  }
  return found;
}

function splitsPair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}

/** Interleaves several iterators, one element of each in turn, skipping those that have ended. */
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

/** Concatenates several iterables. */
export function* inOrder<T>(all: readonly Iterable<T>[]): Generator<T> {
  for (const each of all) {
    yield* each;
  }
}
