const dayLength = '2026-03-09'.length;

/** The day of a moment in UTC, as `2026-03-09`. @param at Unix milliseconds */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, dayLength);
}

/** The time of day of a moment: `09:47 UTC`. @param at Unix milliseconds */
export function utcTime(at: number): string {
  return `${new Date(at).toISOString().slice(dayLength + 1, dayLength + 6)} UTC`;
}
