/**
 * Returns the back-off before an attempt, in milliseconds. It grows with each attempt, with a random part so that
 * processes differ.
 * @param firstMs and `longestMs`: by default those of connections
 */
export function backOffBefore(attempt: number, firstMs = 50, longestMs = 2000): number {
  const longest = Math.min(firstMs * 2 ** Math.min(attempt, 16), longestMs);
  return Math.round(longest * (0.5 + Math.random() / 2));
}
