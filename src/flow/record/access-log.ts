import type { Logger } from 'pino';
import { masked } from '../../attempts/secrets.js';
import type { Usage } from '../../conversation/usage.js';
import { shortened } from '../../errors.js';
import { type CallRecord, none } from '../../metrics/call-record.js';
import { asciiQuoted } from '../../wire/json.js';
import type { RequestSender } from '../call.js';
import type { VendorAccountRefusal } from '../services.js';

/**
 * Characters of text that clients choose freely, even without a key. Some characters become six in a line. The line must
 * stay below the 4,096 bytes that a pipe accepts in one piece.
 */
const longestPath = 512;
const longestMethod = 32;
/** How long a line waits at most, in milliseconds, unless nothing reads the log. */
const writeEveryMs = 100;

/** Receives the lines of the log. It accepts them immediately, whether or not they are being read. */
export interface LineSink {
  /** @param line of ASCII characters, with its end */
  add(line: string): void;
  /** Starts writing all lines that were added. */
  flush(): void;
  /** Returns the number of lines that are not written yet. */
  waiting(): number;
  /** Returns the number of lines dropped since the last call of this method, because they could not be written in time. */
  takeDropped(): number;
  /** Resolves when all lines are written, or nothing reads them. */
  written(): Promise<void>;
}

export interface AccessLog {
  /** Writes the line of an ended call. @param at Unix milliseconds of its end */
  add(call: CallRecord, at: number): void;
  /** Returns the number of lines that are not written yet. */
  waiting(): number;
  close(): Promise<void>;
}

/**
 * Makes the log of calls: one line for each, never with a key or a body. Lines have the form of all others of the log. They
 * are formatted by hand, since an object and the logger took longer than any other part of a small call.
 * @param sink also receives the lines of `log`
 * @param onDropped called with the number of dropped lines
 */
export function createAccessLog(sink: LineSink, log: Logger, onDropped: (lines: number) => void): AccessLog {
  const lineOf = createLineFormat();
  // Read once: the level of a log does not change.
  const isWanted = log.isLevelEnabled('info');
  const flush = (): void => {
    sink.flush();
    const dropped = sink.takeDropped();
    if (dropped === 0) return;
    log.warn({ dropped }, 'access log lines dropped');
    onDropped(dropped);
  };
  const timer = setInterval(flush, writeEveryMs);
  timer.unref();
  return {
    add(call, at) {
      if (isWanted) sink.add(lineOf(call, at));
    },
    waiting: () => sink.waiting(),
    async close() {
      clearInterval(timer);
      await sink.written();
      flush();
    },
  };
}

/** @returns a function that formats the line of a call, see `AccessLog.add` */
function createLineFormat(): (call: CallRecord, at: number) => string {
  const worker = `,"role":"worker","pid":${process.pid},"id":`;
  let second = -1;
  let begin = '';
  return (call, at) => {
    const ofSecond = at % 1000;
    if (at - ofSecond !== second) {
      second = at - ofSecond;
      begin = `{"level":"info","time":"${new Date(second).toISOString().slice(0, -4)}`;
    }
    const { client, keyId, protocol, model, target, error, cause, usage, givenUp, firstByteMs } = call;
    let line = `${begin}${threeDigits(ofSecond)}Z"${worker}${asciiQuoted(call.id)}`;
    if (client !== null) line += `,"client":${asciiQuoted(client)}`;
    const path = shownPath(call.path, longestPath);
    line += `,"method":${asciiQuoted(shortened(call.method, longestMethod))},"path":${asciiQuoted(path)}`;
    if (keyId !== null) line += `,"key":${asciiQuoted(keyId)}`;
    if (protocol !== null) line += `,"protocol":"${protocol}"`;
    if (model !== null) line += `,"model":${asciiQuoted(model)}`;
    if (target !== null) line += `,"target":${asciiQuoted(target)}`;
    line += `,"status":${call.status},"outcome":"${call.outcome}"`;
    if (error !== null) line += `,"error":"${error}"`;
    if (cause !== null) line += `,"cause":${asciiQuoted(cause)}`;
    line += `,"bytesIn":${call.bytesIn},"bytesOut":${call.bytesOut}`;
    if (usage !== null) line += tokensOf(usage);
    if (givenUp !== null)
      line += `,"givenUpInputTokens":${givenUp.input},"givenUpOutputTokens":${givenUp.output}`;
    if (firstByteMs !== none) line += `,"firstByteMs":${milliseconds(firstByteMs)}`;
    return `${line},"durationMs":${milliseconds(call.durationMs)},"retries":${call.retries},"msg":"request"}\n`;
  };
}

function tokensOf({ input, output, cached, reasoning, estimated, partial }: Usage): string {
  const counted = `,"inputTokens":${input},"outputTokens":${output},"cachedTokens":${cached},"reasoningTokens":${reasoning}`;
  if (estimated === undefined && partial === undefined) return counted;
  return `${counted}${estimated ? ',"tokensEstimated":true' : ''}${partial ? ',"tokensPartial":true' : ''}`;
}

/** Rounds to a thousandth with whole numbers only: formatting a fraction takes several times as long. */
function milliseconds(ms: number): string {
  const thousandths = Math.round(ms * 1000);
  if (!(thousandths >= 0)) return JSON.stringify(ms);
  const rest = thousandths % 1000;
  return `${(thousandths - rest) / 1000}.${threeDigits(rest)}`;
}

function threeDigits(number: number): string {
  if (number >= 100) return `${number}`;
  return number >= 10 ? `0${number}` : `00${number}`;
}

/** Formats the line that tells operators which of an upstream's keys was refused, by its place in the config, and why. */
export function refusalLine(
  call: Pick<RequestSender, 'exchange'>,
  { upstream, keyIndex, error }: VendorAccountRefusal,
): object {
  return {
    id: call.exchange.id,
    upstream: upstream.name,
    apiKey: upstream.apiKeys.length === 0 ? undefined : keyIndex,
    status: error.vendorAccountStatus,
    answer: typeof error.cause === 'string' ? masked(error.cause, upstream) : undefined,
  };
}

const keyParameter = /key(?:=|%3d)[^&]*/gi;
/** Nearly all paths contain neither. */
const mayHaveKey = /[=%]/;

/**
 * Returns a path as operators see and possibly store it. Clients choose its text and its length. It has no query, unless a
 * client has encoded the question mark. A key in such a query is not shown.
 * @param longest characters that are shown
 */
export function shownPath(path: string, longest: number): string {
  const shown = shortened(path, longest);
  return mayHaveKey.test(shown) ? shown.replace(keyParameter, 'key=…') : shown;
}
