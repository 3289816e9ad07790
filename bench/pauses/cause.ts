import type { NotedTurn } from './watch.js';

/** The cause of a turn if neither a single periodic function nor garbage collection took half of it. */
export const otherCause = 'calls and messages';

/** Returns what took at least half of a turn. */
export function causeOf({ cpuMs, gcMs, intervalMs }: NotedTurn): string {
  if (gcMs >= cpuMs / 2) return 'garbage collection';
  const [name = '', ms = 0] = Object.entries(intervalMs).sort(([, a], [, b]) => b - a)[0] ?? [];
  return ms >= cpuMs / 2 ? `each interval of ${name}` : otherCause;
}
