import type { LineSink } from '../../src/flow/record/access-log.js';

/** Makes a sink that writes lines immediately. */
export function lineSink(take: (line: string) => void): LineSink {
  return { add: take, flush: () => {}, waiting: () => 0, takeDropped: () => 0, written: async () => {} };
}
