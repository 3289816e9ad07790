import type { Logger } from 'pino';
import { masked } from '../attempts/secrets.js';
import { type CallRecord, none } from '../metrics/call-record.js';
import type { Asking } from './call.js';
import type { VendorAccountRefusal } from './services.js';

/** Calls whose lines wait to be written; beyond it lines are counted as dropped instead. */
const waitingLines = 20_000;
const writeEveryMs = 100;

export interface AccessLog {
  /** Takes note of a finished call; costs a push. */
  add(call: CallRecord): void;
  /** Writes what waits. */
  flush(): void;
  /** Lines that wait. */
  waiting(): number;
  close(): void;
}

/**
 * One line for each call, written after the call has been answered: never a key, never a body.
 * @param onFault hears what keeps a line from being written; the others are
 * @param onDropped hears how many lines were dropped, since too many waited
 */
export function createAccessLog(
  log: Logger,
  onFault: (fault: unknown, call: CallRecord) => void,
  onDropped: (lines: number) => void,
): AccessLog {
  // Asked once: a log keeps its level, and the question takes as long as a search through the answer.
  const isWanted = log.isLevelEnabled('info');
  let waiting: CallRecord[] = [];
  let dropped = 0;
  const flush = () => {
    const calls = waiting;
    waiting = [];
    for (const call of calls) {
      try {
        log.info(lineOf(call), 'request');
      } catch (fault) {
        onFault(fault, call);
      }
    }
    if (dropped === 0) return;
    log.warn({ dropped }, 'request lines dropped');
    onDropped(dropped);
    dropped = 0;
  };
  const timer = setInterval(flush, writeEveryMs);
  timer.unref();
  return {
    add: (call) => {
      if (!isWanted) return;
      if (waiting.length < waitingLines) waiting.push(call);
      else dropped++;
    },
    flush,
    waiting: () => waiting.length,
    close: () => {
      clearInterval(timer);
      flush();
    },
  };
}

function lineOf(call: CallRecord): object {
  const { usage } = call;
  return {
    id: call.id,
    client: call.client ?? undefined,
    method: call.method,
    path: call.path,
    key: call.keyId ?? undefined,
    protocol: call.protocol ?? undefined,
    model: call.model ?? undefined,
    target: call.target ?? undefined,
    status: call.status,
    outcome: call.outcome,
    error: call.error ?? undefined,
    cause: call.cause ?? undefined,
    bytesIn: call.bytesIn,
    bytesOut: call.bytesOut,
    inputTokens: usage?.input,
    outputTokens: usage?.output,
    cachedTokens: usage?.cached,
    reasoningTokens: usage?.reasoning,
    tokensEstimated: usage?.estimated,
    tokensPartial: usage?.partial,
    givenUpInputTokens: call.givenUp?.input,
    givenUpOutputTokens: call.givenUp?.output,
    firstByteMs: call.firstByteMs === none ? undefined : round(call.firstByteMs),
    durationMs: round(call.durationMs),
    retries: call.retries,
  };
}

/** The line that tells operators which of an upstream's keys was refused, by its place in the config, and how. */
export function refusalLine(
  call: Pick<Asking, 'exchange'>,
  { upstream, key, error }: VendorAccountRefusal,
): object {
  return {
    id: call.exchange.id,
    upstream: upstream.name,
    apiKey: upstream.apiKeys.length === 0 ? undefined : key,
    status: error.vendorAccountStatus,
    answer: typeof error.cause === 'string' ? masked(error.cause, upstream) : undefined,
  };
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
