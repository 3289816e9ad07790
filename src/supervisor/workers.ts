import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { ResolvedConfig } from '../config/resolve.js';
import { type KeptProcess, keepRunning, tell } from './keep.js';
import { messageType, type WorkerNews, type WorkerOrder, type WorkerReport } from './messages.js';

const module = fileURLToPath(new URL('../worker.js', import.meta.url));

export interface WorkersOptions {
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Bytes of a request's head that a worker accepts; uWS reads it from the environment, once. */
  readonly headerBytes: number;
  readonly log: Logger;
  /** A worker began or ceased to serve: these process ids do now. */
  onChange(serving: readonly number[]): void;
  /** A worker is about to be told to start: what it is told now, it knows before it listens. */
  onStart(child: ChildProcess): void;
  /** A worker is gone, with all that it held. */
  onGone(child: ChildProcess): void;
  /** What a worker tells that is not of its life. */
  onNews(child: ChildProcess, news: WorkerNews): void;
  onGivenUp(reason: string): void;
}

export interface WorkerPool {
  /**
   * Sets what workers run with, starts those that wait for it, and sends it to those that run.
   * @returns resolves when all of these have it in force
   */
  apply(config: ResolvedConfig, simulatorUrl: string | null): Promise<void>;
  /** Tells every worker that serves or drains. @returns to whom it was told */
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  /** Lets requests in flight end, for at most `limitMs`, and waits until every worker is gone. */
  drain(limitMs: number): Promise<void>;
  kill(): void;
}

/**
 * Workers end by themselves at the limit of a drain, tell their clients, and write down what these have used: only one
 * that hangs is killed.
 */
const lastWordsMs = 4000;

/** Forks the workers at once, while the config or the simulator may still be on their way, and keeps them running. */
export function createWorkerPool(options: WorkersOptions): WorkerPool {
  const waiting = new Set<ChildProcess>();
  const started = new Set<ChildProcess>();
  const serving = new Set<ChildProcess>();
  /** They drain on their own, and others have their places. */
  const leaving = new Set<ChildProcess>();
  const unconfirmed = new Set<ChildProcess>();
  let current: { readonly config: ResolvedConfig; readonly simulatorUrl: string | null } | null = null;
  let generation = 0;
  let onConfirmed: (() => void) | null = null;
  let onAllGone: (() => void) | null = null;

  const changed = (): void => options.onChange([...serving].flatMap((child) => child.pid ?? []));

  const startWaiting = (): void => {
    if (current === null) return;
    for (const child of waiting) {
      started.add(child);
      options.onStart(child);
      tell(child, {
        type: 'start',
        ...current,
        host: options.host,
        port: options.port,
      } satisfies WorkerOrder);
    }
    waiting.clear();
  };

  const confirm = (child: ChildProcess, problem: string | null): void => {
    if (problem !== null) options.log.error({ worker: child.pid, reason: problem }, 'worker did not reload');
    if (!unconfirmed.delete(child) || unconfirmed.size > 0) return;
    options.log.info({ generation, workers: serving.size }, 'config reloaded');
    onConfirmed?.();
  };

  const forget = (child: ChildProcess): void => {
    const served = serving.delete(child);
    waiting.delete(child);
    started.delete(child);
    confirm(child, null);
    if (served) changed();
  };

  const onMessage = (place: KeptProcess, child: ChildProcess, report: WorkerReport): void => {
    switch (report.type) {
      case 'ready':
        waiting.add(child);
        startWaiting();
        break;
      case 'listening':
        place.markServing(child);
        serving.add(child);
        changed();
        break;
      case 'reloaded':
        if (report.generation === generation) confirm(child, report.problem);
        break;
      case 'draining':
        options.log.info({ worker: child.pid }, 'worker drains on its own');
        forget(child);
        leaving.add(child);
        place.replace(child);
        break;
      case 'failed':
        place.markFailed(child, report.reason);
        break;
      default:
        options.onNews(child, report);
    }
  };

  const places = Array.from({ length: options.count }, (): KeptProcess => {
    const place: KeptProcess = keepRunning({
      role: 'worker',
      module,
      environment: () => workerEnvironment(options.headerBytes),
      onMessage(child, message) {
        if (messageType(message) !== null) onMessage(place, child, message as WorkerReport);
      },
      onExit(child) {
        forget(child);
        leaving.delete(child);
        options.onGone(child);
        if (onAllGone !== null && running().length === 0) onAllGone();
      },
      onGivenUp: options.onGivenUp,
      log: options.log,
    });
    return place;
  });
  const running = (): ChildProcess[] => places.flatMap((place) => place.running());
  const kill = (): void => {
    for (const place of places) place.release();
    for (const child of running()) child.kill('SIGKILL');
  };

  return {
    apply(config, simulatorUrl) {
      current = { config, simulatorUrl };
      generation += 1;
      unconfirmed.clear();
      // Whoever waits for the one before waits no longer than for this one.
      const before = onConfirmed;
      for (const child of started) {
        unconfirmed.add(child);
        tell(child, { type: 'reload', generation, config, simulatorUrl } satisfies WorkerOrder);
      }
      startWaiting();
      if (unconfirmed.size === 0) {
        before?.();
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        onConfirmed = () => {
          onConfirmed = null;
          before?.();
          resolve();
        };
      });
    },
    tellAll(order) {
      const heard = [...started, ...leaving].filter((child) => child.connected);
      for (const child of heard) tell(child, order);
      return heard;
    },
    async drain(limitMs) {
      for (const place of places) place.release();
      if (running().length === 0) return;
      const allGone = new Promise<void>((resolve) => {
        onAllGone = resolve;
      });
      for (const child of running()) {
        if (started.has(child)) tell(child, { type: 'drain' } satisfies WorkerOrder);
        // It never took a connection, and may not listen to orders yet.
        else if (!leaving.has(child)) child.kill('SIGKILL');
      }
      const timer = setTimeout(() => {
        options.log.warn(
          { workers: running().length },
          'workers did not end at the drain limit, they are killed',
        );
        kill();
      }, limitMs + lastWordsMs);
      await allGone;
      clearTimeout(timer);
    },
    kill,
  };
}

/** What must be set before a worker's process starts. */
function workerEnvironment(headerBytes: number): NodeJS.ProcessEnv {
  return {
    // glibc raises this threshold with the first large block that is freed, and then keeps large request bodies in
    // its heap: a worker stayed at 290 MB after a peak of 310, instead of going back to 70.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...process.env,
    UWS_HTTP_MAX_HEADERS_SIZE: String(headerBytes),
  };
}
