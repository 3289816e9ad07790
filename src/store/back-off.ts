const firstBackOffMs = 50;
const longestBackOffMs = 2000;

/** The back-off before an attempt to connect, in milliseconds: longer each time, and not the same for all gateways. */
export function backOffBefore(attempt: number): number {
  const longest = Math.min(firstBackOffMs * 2 ** Math.min(attempt, 10), longestBackOffMs);
  return Math.round(longest * (0.5 + Math.random() / 2));
}
