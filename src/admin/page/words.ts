/** A number with its noun: `1 key`, `2 keys`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A moment for tables that are about days and keys: `2026-11-22 09:47 UTC`. @param at Unix milliseconds */
export function utcMinute(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** What went wrong, for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `${error}`;
}
