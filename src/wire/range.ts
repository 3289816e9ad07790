/** A requested range: from a byte to a byte or to the end, or a number of bytes at the end. */
export type ByteRange =
  | { readonly first: number; readonly last: number | null }
  | { readonly suffix: number };

/** A satisfiable range (RFC 9110 section 14.1.1): its first and last byte, both within the content. */
export interface SatisfiedRange {
  readonly first: number;
  readonly last: number;
}

const form = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i;

/**
 * Parses a `range` header (RFC 9110 section 14.2).
 * @returns null for a header that may be ignored: another unit, several ranges, or an invalid one
 */
export function parseRange(value: string): ByteRange | null {
  const [, first, last] = form.exec(value) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '') return { suffix: Number(last) };
  if (last === '') return { first: Number(first), last: null };
  return Number(first) <= Number(last) ? { first: Number(first), last: Number(last) } : null;
}

/** @returns the bytes of a range in a content of `length` bytes, or null if there are none */
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
 * Parses the `content-range` of a partial answer (RFC 9110 section 14.4).
 * @returns the range and the length of the whole content (-1 if unknown), or null for an invalid value
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

/** Whether an `if-none-match` header contains the entity tag, by weak comparison (RFC 9110 section 13.1.2). */
export function matchesTag(header: string, tag: string): boolean {
  if (header.trim() === '*') return true;
  return header.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);
}
