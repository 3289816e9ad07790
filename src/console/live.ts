import type { HistoryView, LiveState } from '../metrics/live-state.js';
import { ApiError, ask } from './api.js';
import { readEvents } from './sse.js';

/** Points of the last hour, with some room for early steps. */
const maxPoints = 800;
const firstRetryMs = 500;
const longestRetryMs = 10_000;

interface LiveListener {
  onState(state: LiveState): void;
  onHistory(points: readonly HistoryView[]): void;
  /** @param reason null while events arrive, else why they do not */
  onConnection(reason: string | null): void;
}

/**
 * Follows the gateway, and reconnects after every disconnect.
 * @returns a function that stops it
 */
export function followLive(listener: LiveListener): () => void {
  const stop = new AbortController();
  void follow(listener, stop.signal);
  return () => stop.abort();
}

async function follow(listener: LiveListener, signal: AbortSignal): Promise<void> {
  let retryMs = firstRetryMs;
  while (!signal.aborted) {
    try {
      const response = await ask('/console/live', { signal });
      if (response.body === null) throw new ApiError(0, 'The gateway sent nothing.', null, null);
      await hear(response.body, listener, () => {
        retryMs = firstRetryMs;
        listener.onConnection(null);
      });
      listener.onConnection('The connection ended.');
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status === 401)) return;
      listener.onConnection(error instanceof Error ? error.message : 'The connection broke off.');
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(2 * retryMs, longestRetryMs);
  }
}

async function hear(
  body: ReadableStream<Uint8Array>,
  listener: LiveListener,
  onFirst: () => void,
): Promise<void> {
  let points: HistoryView[] = [];
  let isFirst = true;
  for await (const { event, data } of readEvents(body)) {
    if (isFirst) onFirst();
    isFirst = false;
    if (event === 'state') listener.onState(JSON.parse(data) as LiveState);
    if (event === 'history') points = JSON.parse(data) as HistoryView[];
    if (event === 'point') points = [...points.slice(1 - maxPoints), JSON.parse(data) as HistoryView];
    if (event === 'history' || event === 'point') listener.onHistory(points);
  }
}
