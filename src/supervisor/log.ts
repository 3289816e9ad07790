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
  const reason = reasonOf(error, 0).slice(0, longestReason);
  return { type: error.kind, message: reason.replace(/\s+/g, ' ').trim() };
}

const longestReason = 500;
/** Causes of causes that are told; one may be its own. */
const mostCauses = 5;
/** Of what failed at once: a name may have many addresses. */
const mostAtOnce = 2;

/** What an error, or what somebody threw, says with its causes; empty where that is nothing. */
function reasonOf(error: unknown, depth: number): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : '';
  const cause = depth < mostCauses ? reasonOf(error.cause, depth + 1) : '';
  // Its message is for clients.
  if (error instanceof GatewayError) return cause || error.message;
  const own = (error instanceof AggregateError && allReasons(error, depth)) || error.message;
  if (own === '') return cause || codeOf(error) || error.name;
  return own.endsWith(cause) ? own : `${own}: ${cause}`;
}

/** Where a host has addresses of both families, Node tries them all and the error of all has no message. */
function allReasons({ errors }: AggregateError, depth: number): string {
  if (depth >= mostCauses) return '';
  const reasons = errors.slice(0, mostAtOnce).map((each: unknown) => reasonOf(each, depth + 1));
  return reasons.filter((reason) => reason !== '').join('; ');
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/**
 * Of a process that ends Node waits for its threads, and so for ever for one that writes to a socket or terminal nobody
 * reads. Service managers take this signal for an orderly end, and the other for a failure.
 */
function endAtOnce(code: number): void {
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
}
