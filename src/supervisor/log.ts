import { type Logger, pino, stdSerializers } from 'pino';
import { GatewayError } from '../errors.js';
import { asciiJson } from '../wire/ascii-json.js';
import { LineWriter } from './line-writer.js';

/** Names that `LOG_LEVEL` takes. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export interface Log {
  readonly logger: Logger;
  /** What takes its lines; also lines that others have put together. */
  readonly lines: LineWriter;
}

/**
 * Makes the log of one process: JSON lines of ASCII characters on standard output. Nobody waits for whoever reads them,
 * nor does the end of the process: pino's own destination tries for ever where a disk is full.
 * @param role who writes: the primary process or a worker
 */
export function createLog(role: 'primary' | 'worker', level: string): Log {
  const lines = new LineWriter(1);
  const logger = pino(
    {
      level,
      base: { role, pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
    },
    {
      write(line: string) {
        lines.add(asciiJson(line));
        lines.flush();
      },
    },
  );
  process.once('exit', (code) => {
    if (!lines.writeNow()) endAtOnce(code);
  });
  return { logger, lines };
}

/** A store that is gone, or its disk full, is no mistake of ours: its own words say more than a stack. */
function describeError(error: Error): object {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable')
    return stdSerializers.err(error);
  const { kind, message, cause } = error;
  return { type: kind, message: cause instanceof Error ? cause.message : message };
}

/**
 * Of a process that ends Node waits for its threads, and so for ever for one that writes to a socket or terminal nobody
 * reads. Service managers take this signal for an orderly end, and the other for a failure.
 */
function endAtOnce(code: number): void {
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
}
