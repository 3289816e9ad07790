import type { NotedTurn } from './watch.js';

/** What most of a turn is put down to when nothing at intervals and no collection has half of it. */
export const otherCause = 'calls and messages';

/** @returns what took at least half of a turn */
export function causeOf({ cpuMs, gcMs, intervalMs }: NotedTurn): string {
  if (gcMs >= cpuMs / 2) return 'garbage collection';
  const [name = '', ms = 0] = Object.entries(intervalMs).sort(([, a], [, b]) => b - a)[0] ?? [];
  return ms >= cpuMs / 2 ? `each interval of ${name}` : otherCause;
}
