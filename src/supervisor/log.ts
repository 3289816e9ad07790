import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { type Logger, pino, stdSerializers } from 'pino';
import { errorCode, GatewayError } from '../errors.js';
import { asciiJson } from '../wire/ascii-json.js';

/**
 * Lines go into a buffer of this size, and are written from there. A file takes one as a whole: what several processes
 * append to it is never mixed.
 */
const bufferBytes = 65_536;
/** In any other place as many bytes of one write stay together (POSIX, PIPE_BUF). */
const pipeBytes = 4096;
/** So many full buffers wait for a reader; lines for which there is no room then are dropped. */
const mostBatches = 256;
/** So much is written at once, and need not wait for `flush`: each write costs as much as a hundred lines take to make. */
const batchBytes = 49_152;
/** How long a pipe that was full is left alone. */
const fullMs = 20;
/** And one that has failed, or a disk. */
const failedMs = 100;
const newline = 0x0a;
/** How long the last lines are waited for. */
const lastLinesMs = 500;

/** Whole lines, in the order of `bytes`. */
interface Batch {
  readonly bytes: Buffer;
  length: number;
  lines: number;
}

/**
 * Takes lines that are to be written soon; never waits for whoever reads them. Writes to a descriptor that other
 * processes may write to as well: no line is ever mixed with one of theirs, unless it is longer than a pipe takes
 * at once.
 */
export class LineWriter {
  readonly #fd: number;
  /** It is a pipe that says when it is full, so that nothing has to wait for it. */
  readonly #refuses: boolean;
  readonly #mostBytes: number;
  #filling = emptyBatch(bufferBytes);
  /** Full ones, oldest first. */
  readonly #full: Batch[] = [];
  /** To be filled next. */
  #spare: Batch | null = null;
  #writing: Batch | null = null;
  /** Of the one that is written: where the rest begins. */
  #from = 0;
  #waiting = 0;
  #dropped = 0;
  /** It is to go on with what is not a whole batch, behind those that are. */
  #isAsked = false;
  /** What is under way was not taken while `written` has waited. */
  #isStuck = false;
  #onWritten: (() => void)[] = [];

  constructor(fd: number) {
    const pipe = refusingPipe(fd);
    this.#fd = pipe ?? fd;
    this.#refuses = pipe !== null;
    this.#mostBytes = fstatSync(fd).isFile() ? Number.POSITIVE_INFINITY : pipeBytes;
  }

  /** @param line of ASCII characters, with its end */
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

  /** Makes room for a line of so many bytes. @returns false where too much waits */
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

  /** Has all written that was added. */
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

  /** Lines that are not written yet. */
  waiting(): number {
    return this.#waiting;
  }

  /** Lines that could not be written, or for which there was no room, since the last time that this was asked. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Writes what waits. @returns resolves when it is written, or fails, or after half a second without the rest */
  written(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        // A disk takes what it takes in its time, or says no.
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
   * Writes what waits as far as it is taken at once: for a process that ends.
   * @returns false where it would not: a thread waits for a reader that has taken nothing while `written` has waited
   */
  writeNow(): boolean {
    // Whoever has not taken what is under way may take no more.
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
      // There is nowhere left to say so.
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

  /** Bytes of as many whole lines as one write may hold, or of a part of one that is longer. */
  #partOf(bytes: Buffer, from: number): number {
    const most = from + this.#mostBytes;
    if (bytes.length <= most) return bytes.length - from;
    const end = bytes.lastIndexOf(newline, most - 1) + 1;
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

  /** A pipe may have room a moment later; else the disk is full, or nobody reads any more. */
  #fail(batch: Batch, code: string): void {
    if (code === 'EAGAIN') {
      setTimeout(this.#onRoom, fullMs).unref();
      return;
    }
    // The end of a line that was dropped before is none.
    if (batch.lines > 0) this.#dropped += linesIn(batch.bytes.subarray(this.#from, batch.length));
    // What was begun of a line, earlier than in the batch too, is ended before the next one.
    if (batch.bytes[this.#from - 1] !== newline && (this.#from > 0 || batch.lines === 0))
      this.#full.unshift({ bytes: Buffer.from([newline]), length: 1, lines: 0 });
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
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++;
  return lines;
}

/**
 * A pipe opened once more, so that it refuses what it has no room for: of the descriptor itself, which others share, that
 * cannot be asked. A write that waits for a reader would keep its thread, and with it the process from ending.
 * @returns null for what is no pipe, or cannot be opened
 */
function refusingPipe(fd: number): number | null {
  if (!fstatSync(fd).isFIFO()) return null;
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

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
