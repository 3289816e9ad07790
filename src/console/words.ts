/** A number with its noun: `1 key`, `2 keys`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The readable message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `${error}`;
}
