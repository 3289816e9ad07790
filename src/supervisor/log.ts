import { type Logger, pino } from 'pino';

/** Names that `LOG_LEVEL` takes. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export interface Log {
  readonly logger: Logger;
  /** Writes what is still held, before the process ends. */
  flush(): void;
  /** How many lines were dropped until now, since whoever reads them was too slow. */
  dropped(): number;
}

/**
 * What JSON leaves as it is and a terminal or a viewer of lines obeys: DEL, the controls of Latin-1, ends of lines and
 * marks of direction of Unicode. Paths and upstreams' words bring them.
 */
const obeyed = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const obeyedOnes = new RegExp(obeyed, 'g');

/** A line of JSON with these in escapes. */
function harmless(line: string): string {
  if (!obeyed.test(line)) return line;
  return line.replace(obeyedOnes, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Makes the log of one process: JSON lines on standard output, written off the hot path's back.
 * @param role who writes: the primary process or a worker
 */
export function createLog(role: 'primary' | 'worker', level: string): Log {
  // All processes share one pipe: writes of up to 4,096 bytes are never mixed with another's (POSIX, PIPE_BUF).
  // A reader that stalls costs lines, not memory without end.
  const destination = pino.destination({ fd: 1, sync: false, maxWrite: 4096, maxLength: 16_777_216 });
  let dropped = 0;
  destination.on('drop', () => {
    dropped++;
  });
  // Nobody reads any more (`start | head`): the gateway goes on without a log.
  destination.on('error', () => {});
  const logger = pino(
    {
      level,
      base: { role, pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: { streamWrite: harmless },
    },
    destination,
  );
  const flush = (): void => {
    try {
      destination.flushSync();
    } catch {
      // The pipe is gone or full: there is nowhere left to say so.
    }
  };
  return { logger, flush, dropped: () => dropped };
}
