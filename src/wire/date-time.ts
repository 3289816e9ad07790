/** RFC 3339 section 5.6, without leap seconds. */
const form = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/**
 * Reads a date and time such as `2027-01-01T00:00:00Z`.
 * @returns Unix milliseconds, or null for an invalid text. Nonexistent days are checked for, since `Date.parse` rolls
 *   some of them over, such as the 30th of February
 */
export function readDateTime(text: string): number | null {
  const time = form.test(text) ? Date.parse(text) : Number.NaN;
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(time) || Number.isNaN(day.getTime())) return null;
  return day.toISOString().startsWith(text.slice(0, 10)) ? time : null;
}
