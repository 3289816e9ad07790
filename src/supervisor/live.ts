import type { ChildProcess } from 'node:child_process';
import type { Logger } from 'pino';
import { liveState } from '../admin/live.js';
import type { GatewayView } from '../admin/live-state.js';
import { createLiveStream, type LiveStream } from '../admin/live-stream.js';
import { createHistory, historyStepMs } from '../metrics/history.js';
import type { Inspection } from '../metrics/inspection.js';
import type { MetricsSnapshot } from '../metrics/snapshot.js';
import { createCollector } from './collect.js';
import type { Inspected, WorkerOrder } from './messages.js';

export interface LiveOptions {
  /** Asks all workers what they have counted. @returns the sum, when those have answered that do so in time */
  counted(): Promise<MetricsSnapshot>;
  /** What is known without asking. */
  counts(): MetricsSnapshot;
  gateway(): GatewayView;
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  readonly log: Logger;
}

/** What the console is told. */
export interface Live {
  readonly stream: LiveStream;
  /** Begins to remember the last hour. */
  start(): void;
  /** Remembers nothing more, and ends all streams. */
  stop(): void;
  /** What the workers tell of this moment that answer in time. */
  inspections(): Promise<readonly Inspection[]>;
  onInspected(child: ChildProcess, inspected: Inspected): void;
  onGone(child: ChildProcess): void;
}

/** Follows all workers: for the history all the time, and more closely while somebody looks. */
export function createLive({ counted, counts, gateway, tellAll, log }: LiveOptions): Live {
  const history = createHistory();
  const inspector = createCollector<ChildProcess, Inspection>((id) => tellAll({ type: 'inspect', id }));
  const stream = createLiveStream({
    history: () => history.points(0),
    async state() {
      const [merged, inspections] = await Promise.all([counted(), inspector.collect()]);
      return liveState({ at: Date.now(), gateway: gateway(), merged, inspections });
    },
    log,
  });
  let timer: NodeJS.Timeout | null = null;

  const sample = async (): Promise<void> => {
    const merged = await counted();
    if (timer === null) return;
    const point = history.add(merged, Date.now());
    if (point !== null) stream.point(point);
  };

  return {
    stream,
    start() {
      if (timer !== null) return;
      history.add(counts(), Date.now());
      timer = setInterval(() => {
        sample().catch((error: unknown) =>
          log.error({ err: error }, 'the history has no point of this time'),
        );
      }, historyStepMs).unref();
    },
    stop() {
      if (timer !== null) clearInterval(timer);
      timer = null;
      stream.close();
    },
    inspections: () => inspector.collect(),
    onInspected: (child, { id, inspection }) => inspector.onPart(child, id, inspection),
    onGone: (child) => inspector.onGone(child),
  };
}
