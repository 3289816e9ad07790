import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { type Logger, pino, stdSerializers } from 'pino';
import { errorCode, GatewayError } from '../errors.js';
import { LF } from '../wire/bytes.js';
import { asciiJson } from '../wire/json.js';

/**
 * Size of a buffer of lines. A file takes a buffer in one write, so lines that several processes append to it never
 * mix.
 */
const bufferBytes = 65_536;
/** Elsewhere, writes of up to this many bytes are atomic (POSIX, PIPE_BUF). */
const pipeBytes = 4096;
/** Most full buffers that wait for a reader. Lines beyond them are dropped. */
const mostBatches = 256;
/**
 * A batch of this size is written without waiting for `flush`. One write costs as much as the creation of a hundred
 * lines.
 */
const batchBytes = 49_152;
/** Wait before a full pipe is tried again. */
const fullMs = 20;
/** Wait after a write to a pipe or disk has failed. */
const failedMs = 100;
/** Longest wait for the last lines. */
const lastLinesMs = 500;

/** Whole lines, in the order of `bytes`. */
interface Batch {
  readonly bytes: Buffer;
  length: number;
  lines: number;
}

/**
 * Buffers lines and writes them soon. Never waits for a reader. Other processes may write to the same descriptor: a
 * line never mixes with theirs, unless it is longer than a pipe accepts in one atomic write.
 */
export class LineWriter {
  readonly #fd: number;
  /** Whether this is a pipe that reports when it is full, so that no write has to wait. */
  readonly #refuses: boolean;
  readonly #mostBytes: number;
  #filling = emptyBatch(bufferBytes);
  /** Full batches, oldest first. */
  readonly #full: Batch[] = [];
  /** The batch to fill next. */
  #spare: Batch | null = null;
  #writing: Batch | null = null;
  /** Where the unwritten rest of `#writing` begins. */
  #from = 0;
  #waiting = 0;
  #dropped = 0;
  /** Whether to write the batch being filled, too, after the full ones. */
  #isAsked = false;
  /** Whether the write in flight made no progress while `written` waited. */
  #isStuck = false;
  #onWritten: (() => void)[] = [];

  constructor(fd: number) {
    const pipe = refusingPipe(fd);
    this.#fd = pipe ?? fd;
    this.#refuses = pipe !== null;
    this.#mostBytes = fstatSync(fd).isFile() ? Number.POSITIVE_INFINITY : pipeBytes;
  }

  /** @param line ASCII characters, with the line's end */
  add(line: string): void {
    if (this.#filling.length + line.length > this.#filling.bytes.length && !this.#renew(line.length)) {
      this.#dropped++;
      return;
    }
    const batch = this.#filling;
    batch.length += batch.bytes.write(line, batch.length, 'latin1');
    batch.lines++;
    this.#waiting++;
    if (batch.length >= batchBytes) this.flush();
  }

  /**
   * Makes room for a line of this length.
   * @returns false if too much is waiting
   */
  #renew(length: number): boolean {
    if (this.#full.length >= mostBatches) return false;
    if (this.#filling.lines > 0) this.#full.push(this.#filling);
    this.#filling = length > bufferBytes ? emptyBatch(length) : this.#emptied();
    return true;
  }

  #emptied(): Batch {
    const spare = this.#spare ?? emptyBatch(bufferBytes);
    this.#spare = null;
    return spare;
  }

  /** Writes all lines added so far. */
  flush(): void {
    this.#isAsked = true;
    this.#goOn();
  }

  #goOn(): void {
    if (this.#writing !== null) return;
    let batch = this.#full.shift();
    if (batch === undefined) {
      this.#isAsked = false;
      if (this.#filling.lines === 0) return;
      batch = this.#filling;
      this.#filling = this.#emptied();
    }
    this.#writing = batch;
    this.#from = 0;
    this.#write(batch);
  }

  /** Number of lines not written yet. */
  waiting(): number {
    return this.#waiting;
  }

  /** Number of lines dropped since the last call, because a write failed or there was no room. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /**
   * Writes all waiting lines.
   * @returns resolves when they are written, when a write fails, or after half a second
   */
  written(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        // A disk accepts a write in its own time, or fails it.
        this.#isStuck = this.#writing !== null && this.#mostBytes === pipeBytes;
        resolve();
      }, lastLinesMs);
      this.#onWritten.push(() => {
        clearTimeout(timer);
        resolve();
      });
      this.flush();
      if (this.#writing === null) this.#tellWritten();
    });
  }

  #tellWritten(): void {
    const told = this.#onWritten;
    this.#onWritten = [];
    for (const tell of told) tell();
  }

  /**
   * Writes waiting lines synchronously, as many as are accepted immediately. For a process that exits.
   * @returns false if that is impossible: a thread waits for a reader that accepted nothing while `written` waited
   */
  writeNow(): boolean {
    // A reader that has not accepted the write in flight may accept nothing more.
    if (this.#writing !== null && !this.#refuses) return !this.#isStuck;
    const writing = this.#writing?.bytes.subarray(this.#from, this.#writing.length);
    const rest = [...this.#full, this.#filling].map(({ bytes, length }) => bytes.subarray(0, length));
    try {
      for (const bytes of writing === undefined ? rest : [writing, ...rest]) {
        for (let from = 0; from < bytes.length; ) {
          const part = this.#partOf(bytes, from);
          from += writeSync(this.#fd, bytes, from, part);
        }
      }
    } catch {
      // There is nowhere left to report this.
    }
    return true;
  }

  #write(batch: Batch): void {
    if (!this.#refuses) {
      const length = this.#partOf(batch.bytes.subarray(0, batch.length), this.#from);
      write(this.#fd, batch.bytes, this.#from, length, null, this.#onBytes);
      return;
    }
    try {
      const bytes = batch.bytes.subarray(0, batch.length);
      while (this.#from < bytes.length)
        this.#from += writeSync(this.#fd, bytes, this.#from, this.#partOf(bytes, this.#from));
    } catch (error) {
      this.#fail(batch, errorCode(error));
      return;
    }
    this.#end(batch);
  }

  /** Bytes of the whole lines that fit into one write, or of a part of a longer line. */
  #partOf(bytes: Buffer, from: number): number {
    const most = from + this.#mostBytes;
    if (bytes.length <= most) return bytes.length - from;
    const end = bytes.lastIndexOf(LF, most - 1) + 1;
    return (end > from ? end : most) - from;
  }

  readonly #onBytes = (error: NodeJS.ErrnoException | null, written: number): void => {
    const batch = this.#writing;
    this.#isStuck = false;
    if (batch === null) return;
    if (error !== null) {
      this.#fail(batch, errorCode(error));
      return;
    }
    this.#from += written;
    if (this.#from < batch.length) this.#write(batch);
    else this.#end(batch);
  };

  /** Handles a failed write. A pipe may have room a moment later. Otherwise the disk is full, or the reader is gone. */
  #fail(batch: Batch, code: string): void {
    if (code === 'EAGAIN') {
      setTimeout(this.#onRoom, fullMs).unref();
      return;
    }
    // A batch that only ends a dropped line contains no line.
    if (batch.lines > 0) this.#dropped += linesIn(batch.bytes.subarray(this.#from, batch.length));
    // If a part of a line was written, here or in an earlier batch, a newline precedes the next line.
    if (batch.bytes[this.#from - 1] !== LF && (this.#from > 0 || batch.lines === 0))
      this.#full.unshift({ bytes: Buffer.from([LF]), length: 1, lines: 0 });
    this.#release(batch);
    this.#tellWritten();
    setTimeout(this.#onTurn, failedMs).unref();
  }

  readonly #onRoom = (): void => {
    if (this.#writing !== null) this.#write(this.#writing);
  };

  #end(batch: Batch): void {
    this.#release(batch);
    if (this.#full.length > 0) setImmediate(this.#onTurn);
    else if (this.#filling.length >= batchBytes || this.#isAsked || this.#onWritten.length > 0) this.#goOn();
    if (this.#writing === null && this.#waiting === 0) this.#tellWritten();
  }

  readonly #onTurn = (): void => this.#goOn();

  #release(batch: Batch): void {
    this.#waiting -= batch.lines;
    this.#writing = null;
    if (batch.bytes.length !== bufferBytes) return;
    batch.length = 0;
    batch.lines = 0;
    this.#spare = batch;
  }
}

function emptyBatch(bytes: number): Batch {
  return { bytes: Buffer.allocUnsafeSlow(bytes), length: 0, lines: 0 };
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) lines++;
  return lines;
}

/**
 * Opens a pipe again, in non-blocking mode. Other processes share the original descriptor, so its mode must not change.
 * A write that waits for a reader would block its thread, and with it the exit of the process.
 * @returns null if the descriptor is not a pipe, or cannot be opened
 */
function refusingPipe(fd: number): number | null {
  if (!fstatSync(fd).isFIFO()) return null;
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

/** Values of `LOG_LEVEL`. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export interface Log {
  readonly logger: Logger;
  /** Writer of the log's lines. Also accepts lines formatted elsewhere. */
  readonly lines: LineWriter;
}

/**
 * Creates the log of one process: JSON lines of ASCII characters on standard output. Nothing waits for the reader, not
 * even the exit of the process. pino's own destination retries for ever when a disk is full.
 * @param role role of the process that writes
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

/**
 * Keeps SIGUSR1 from opening Node's debugger, to which every user of the machine may connect. Other servers open their
 * log again on this signal.
 */
export function ignoreDebugSignal(logger: Logger): void {
  process.on('SIGUSR1', () =>
    logger.info('SIGUSR1 has no effect: the log is the standard output, which is not opened again'),
  );
}

/**
 * Serializes an error. A store that is unavailable, or has a full disk, is not an internal error: its message says more
 * than a stack.
 */
function describeError(error: Error): object {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable')
    return stdSerializers.err(error);
  const reason = reasonOf(error, 0).slice(0, longestReason);
  return { type: error.kind, message: reason.replace(/\s+/g, ' ').trim() };
}

const longestReason = 500;
/** Most causes followed in a chain, which may be cyclic. */
const mostCauses = 5;
/** Most errors listed of an `AggregateError`: a name may have many addresses. */
const mostAtOnce = 2;

/** Collects the messages of a thrown value and its causes. Empty if there are none. */
function reasonOf(error: unknown, depth: number): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : '';
  const cause = depth < mostCauses ? reasonOf(error.cause, depth + 1) : '';
  // The message of this error is written for clients.
  if (error instanceof GatewayError) return cause || error.message;
  const own = (error instanceof AggregateError && allReasons(error, depth)) || error.message;
  if (own === '') return cause || codeOf(error) || error.name;
  return own.endsWith(cause) ? own : `${own}: ${cause}`;
}

/** If a host has addresses of both families, Node tries them all, and the resulting error has no message. */
function allReasons({ errors }: AggregateError, depth: number): string {
  if (depth >= mostCauses) return '';
  const reasons = errors.slice(0, mostAtOnce).map((each: unknown) => reasonOf(each, depth + 1));
  return reasons.filter((reason) => reason !== '').join('; ');
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/**
 * Ends the process by a signal. On exit Node waits for its threads, which is for ever if one writes to a socket or
 * terminal that has no reader. Service managers treat SIGTERM as an orderly end, and SIGKILL as a failure.
 */
function endAtOnce(code: number): void {
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
}
