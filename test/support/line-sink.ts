import type { LineSink } from '../../src/flow/record/access-log.js';

/** A sink whose lines are written at once. */
export function lineSink(take: (line: string) => void): LineSink {
  return { add: take, flush: () => {}, waiting: () => 0, takeDropped: () => 0, written: async () => {} };
}
