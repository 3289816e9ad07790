const dayLength = '2026-03-09'.length;

/** The day of a moment in UTC, as `2026-03-09`. @param at Unix milliseconds */
export function utcDay(at: number): string {
  return new Date(at).toISOString().slice(0, dayLength);
}

/** A moment where days and minutes count: `2026-11-22 09:47 UTC`. @param at Unix milliseconds */
export function utcMinute(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
