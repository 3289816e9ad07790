import { type Logger, pino } from 'pino';

/** Names that `LOG_LEVEL` takes. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export interface Log {
  readonly logger: Logger;
  /** Writes what is still held, before the process ends. */
  flush(): void;
}

/**
 * Makes the log of one process: JSON lines on standard output, written off the hot path's back.
 * @param role who writes: the primary process or a worker
 */
export function createLog(role: 'primary' | 'worker', level: string): Log {
  // All processes share one pipe: writes of up to 4,096 bytes are never mixed with another's (POSIX, PIPE_BUF).
  // A reader that stalls costs lines, not memory without end.
  const destination = pino.destination({ fd: 1, sync: false, maxWrite: 4096, maxLength: 16_777_216 });
  // Nobody reads any more (`start | head`): the gateway goes on without a log.
  destination.on('error', () => {});
  const logger = pino(
    {
      level,
      base: { role, pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
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
  return { logger, flush };
}
