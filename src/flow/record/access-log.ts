import type { Logger } from 'pino';
import { masked } from '../../attempts/secrets.js';
import type { Usage } from '../../conversation/usage.js';
import { type CallRecord, none } from '../../metrics/call-record.js';
import { asciiQuoted } from '../../wire/ascii-json.js';
import type { Asking } from '../call.js';
import type { VendorAccountRefusal } from '../services.js';

/**
 * Characters of what whoever comes is free to choose, without a key, too. Some become six of a line, which stays below
 * the 4,096 bytes that a pipe takes in one piece.
 */
const longestPath = 512;
const longestMethod = 32;
/** How long a line waits at most, unless nobody reads. */
const writeEveryMs = 100;

/** Where the lines of the log go; it takes them at once, whoever reads them. */
export interface LineSink {
  /** @param line of ASCII characters, with its end */
  add(line: string): void;
  /** Has all written that was added. */
  flush(): void;
  /** Lines that are not written yet. */
  waiting(): number;
  /** Lines that were dropped since the last time that this was asked, since they could not be written in time. */
  takeDropped(): number;
  /** Resolves when all is written, or nobody takes it. */
  written(): Promise<void>;
}

export interface AccessLog {
  /** Writes the line of a call that has ended. @param at Unix milliseconds of its end */
  add(call: CallRecord, at: number): void;
  /** Lines that are not written yet. */
  waiting(): number;
  close(): Promise<void>;
}

/**
 * One line for each call, never a key, never a body. Lines have the form of all others of the log, and are put together
 * by hand: by way of an object and the logger, one took longer than any other part of a small call.
 * @param sink takes the lines of `log`, too
 * @param onDropped hears how many lines were dropped
 */
export function createAccessLog(sink: LineSink, log: Logger, onDropped: (lines: number) => void): AccessLog {
  const lineOf = createLineFormat();
  // Asked once: a log keeps its level.
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

/** @returns what gives the line of a call, see `AccessLog.add` */
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
    line += `,"method":${asciiQuoted(cut(call.method, longestMethod))},"path":${asciiQuoted(path)}`;
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

/** To a thousandth, of whole numbers alone: to write a fraction takes several times as long. */
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

/** The line that tells operators which of an upstream's keys was refused, by its place in the config, and how. */
export function refusalLine(
  call: Pick<Asking, 'exchange'>,
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
/** Nearly all paths have neither. */
const mayHaveKey = /[=%]/;

/**
 * A path as operators see it, who may keep it: a client chooses what is in it, and how long it is. The query is no part of
 * it, unless a client has encoded its question mark, and a key that it then has is not shown.
 * @param longest characters that are shown
 */
export function shownPath(path: string, longest: number): string {
  const shown = cut(path, longest);
  return mayHaveKey.test(shown) ? shown.replace(keyParameter, 'key=…') : shown;
}

/** As much of a text as may be shown, and a sign that there is more. */
export function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}
