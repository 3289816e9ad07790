/**
 * The back-off before an attempt, in milliseconds: longer each time, and not the same for all processes.
 * @param firstMs and `longestMs`: those to connect, unless given
 */
export function backOffBefore(attempt: number, firstMs = 50, longestMs = 2000): number {
  const longest = Math.min(firstMs * 2 ** Math.min(attempt, 16), longestMs);
  return Math.round(longest * (0.5 + Math.random() / 2));
}
