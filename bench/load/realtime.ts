import type { SocketTarget } from './raw-socket.js';
import { startWarming, type WarmingClient } from './script.js';

/** Sessions on which messages are echoed as fast as possible. */
export interface RealtimePlan extends SocketTarget {
  readonly sessions: number;
  /** Messages under way on each session. */
  readonly window: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface RealtimeResult {
  /** Messages that were sent and echoed. */
  readonly messagesPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly errors: readonly string[];
}

/** Starts the client in a separate process. */
export function startRealtime(
  plan: RealtimePlan,
  core: number | null,
): Promise<WarmingClient<RealtimeResult>> {
  return startWarming<RealtimeResult>('realtime-process.js', plan, core);
}
