import type { Logger } from 'pino';
import { clientAddress } from '../http/client-address.js';
import type { Call } from './call.js';

/** Calls whose lines wait to be written; beyond it lines are counted as dropped instead. */
const waitingLines = 20_000;
const writeEveryMs = 100;

export interface AccessLog {
  /** Takes note of a finished call; costs a push. */
  add(call: Call): void;
  /** Writes what waits. */
  flush(): void;
  close(): void;
}

/** One line for each call, written behind the hot path's back: never a key, never a body. */
export function createAccessLog(log: Logger): AccessLog {
  let waiting: Call[] = [];
  let dropped = 0;
  const flush = () => {
    const calls = waiting;
    waiting = [];
    for (const call of calls) log.info(lineOf(call), 'request');
    if (dropped > 0) log.warn({ dropped }, 'request lines dropped');
    dropped = 0;
  };
  const timer = setInterval(flush, writeEveryMs);
  timer.unref();
  return {
    add: (call) => {
      if (!log.isLevelEnabled('info')) return;
      if (waiting.length < waitingLines) waiting.push(call);
      else dropped++;
    },
    flush,
    close: () => {
      clearInterval(timer);
      flush();
    },
  };
}

function lineOf(call: Call): object {
  const { exchange, usage, error } = call;
  return {
    id: exchange.id,
    client: clientOf(call),
    method: exchange.method,
    path: exchange.path,
    key: call.key?.id,
    protocol: call.route?.protocol ?? undefined,
    model: call.model?.name,
    target: call.target === null ? undefined : `${call.target.upstream.name}/${call.target.model}`,
    status: exchange.status,
    outcome: call.outcome,
    error: error === null ? undefined : error.kind,
    cause: typeof error?.cause === 'string' ? error.cause : undefined,
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    inputTokens: usage?.input,
    outputTokens: usage?.output,
    cachedTokens: usage?.cached,
    reasoningTokens: usage?.reasoning,
    tokensEstimated: usage?.estimated,
    tokensPartial: usage?.partial,
    firstByteMs: call.answeredAt > 0 ? round(call.answeredAt - call.startedAt) : undefined,
    durationMs: round(call.endedAt - call.startedAt),
    retries: call.retries,
  };
}

function clientOf({ exchange, running }: Call): string | undefined {
  const { peer, forwardedFor } = exchange.head;
  if (peer === null || running.proxies === null) return undefined;
  return clientAddress(peer, forwardedFor, running.proxies);
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
