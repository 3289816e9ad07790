const firstPauseMs = 50;
const longestPauseMs = 2000;

/** The pause before an attempt to connect: longer each time, and not the same for all gateways. */
export function pauseBefore(attempt: number): number {
  const pause = Math.min(firstPauseMs * 2 ** Math.min(attempt, 10), longestPauseMs);
  return Math.round(pause * (0.5 + Math.random() / 2));
}
