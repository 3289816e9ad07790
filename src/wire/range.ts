/** Part of a content that a client asks for: from a byte to a byte or to the end, or the last so many bytes. */
export type ByteRange =
  | { readonly first: number; readonly last: number | null }
  | { readonly suffix: number };

/** A range that a content has (RFC 9110 section 14.1.1): its first and last byte, both within it. */
export interface SatisfiedRange {
  readonly first: number;
  readonly last: number;
}

const form = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i;

/**
 * Reads a `range` header (RFC 9110 section 14.2).
 * @returns null for what may be ignored: another unit, several ranges, or one that is not valid
 */
export function parseRange(value: string): ByteRange | null {
  const [, first, last] = form.exec(value) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '') return { suffix: Number(last) };
  if (last === '') return { first: Number(first), last: null };
  return Number(first) <= Number(last) ? { first: Number(first), last: Number(last) } : null;
}

/** @returns what a range is of a content of `length` bytes, or null when there is nothing of it */
export function satisfiedRange(range: ByteRange, length: number): SatisfiedRange | null {
  if ('suffix' in range) {
    if (range.suffix === 0 || length === 0) return null;
    return { first: Math.max(0, length - range.suffix), last: length - 1 };
  }
  if (range.first >= length) return null;
  return { first: range.first, last: Math.min(range.last ?? length - 1, length - 1) };
}

const contentRangeForm = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i;

/**
 * Reads the `content-range` of a partial answer (RFC 9110 section 14.4).
 * @returns the range and the length of the whole (-1 where it is not told), or null for a value that is not valid
 */
export function parseContentRange(
  value: string | null,
): (SatisfiedRange & { readonly length: number }) | null {
  const [, first, last, length] = contentRangeForm.exec(value ?? '') ?? [];
  if (first === undefined || last === undefined || length === undefined) return null;
  const satisfied = {
    first: Number(first),
    last: Number(last),
    length: length === '*' ? -1 : Number(length),
  };
  const isWithin = satisfied.length === -1 || satisfied.last < satisfied.length;
  return satisfied.first <= satisfied.last && isWithin ? satisfied : null;
}

/** True when an `if-none-match` header names the entity tag (RFC 9110 section 13.1.2), compared weakly. */
export function matchesTag(header: string, tag: string): boolean {
  if (header.trim() === '*') return true;
  return header.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);
}
