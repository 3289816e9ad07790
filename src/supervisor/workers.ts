import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { ResolvedConfig } from '../config/resolve.js';
import { createConditions } from './condition.js';
import { type KeptProcess, keepRunning, tell } from './keep.js';
import { messageType, type WorkerNews, type WorkerOrder, type WorkerReport } from './messages.js';
import { createRounds } from './rounds.js';
import { startSettings, workerEnvironment } from './worker-start.js';

const module = fileURLToPath(new URL('../worker.js', import.meta.url));

export interface WorkersOptions {
  /** What the first workers start with; those that `apply` is given come in their place. */
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
  /** A worker is gone, with all that it held; `isPlanned` when it was to end, or another has its place. */
  onGone(child: ChildProcess, isPlanned: boolean): void;
  /** What a worker tells that is not of its life. */
  onNews(child: ChildProcess, news: WorkerNews): void;
  onGivenUp(reason: string): void;
}

export interface WorkerPool {
  /**
   * Sets how many workers there are and what they run with, starts those that wait for it, and sends it to those that
   * run. Where something changes that a worker takes up only when it starts, all are replaced, one after another: the
   * successor serves before the one before it drains.
   * @returns resolves when all have it in force, or with the reason why some have not
   */
  apply(config: ResolvedConfig, simulatorUrl: string | null, count: number): Promise<string | null>;
  /** Tells every worker that serves or drains. @returns to whom it was told */
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  /**
   * Lets requests in flight end, for at most `limitMs`, and waits until every worker is gone.
   * @param isReplaced another gateway serves the port, so that there is time for clients to go there
   */
  drain(limitMs: number, isReplaced: boolean): Promise<void>;
  /** Gives clients no more time during a drain than at the end of a gateway. */
  hasten(): void;
  kill(): void;
}

/**
 * Workers end by themselves at the limit of a drain, tell their clients, and write down what these have used: only one
 * that hangs is killed.
 */
const lastWordsMs = 4000;
/** Longest wait for a successor. */
const startMs = 30_000;
/** Workers of one place that still drain; the oldest is cut when there are more. */
const mostLeaving = 4;
/** How long what comes on idle connections is still served: to the end of a gateway, and where there is another worker. */
const graceMs = { atEnd: 300, replaced: 5000 } as const;

/** Forks the workers at once, while the config or the simulator may still be on their way, and keeps them running. */
export function createWorkerPool(options: WorkersOptions): WorkerPool {
  const waiting = new Set<ChildProcess>();
  const started = new Set<ChildProcess>();
  const serving = new Set<ChildProcess>();
  /** They drain on their own, and others have their places. */
  const leaving = new Set<ChildProcess>();
  let current: { readonly config: ResolvedConfig; readonly simulatorUrl: string | null } | null = null;
  /** What all workers were started with that they cannot change. */
  let startedWith: string | null = null;
  let { headerBytes } = options;
  let isDraining = false;
  const conditions = createConditions();
  const reloads = createRounds<ChildProcess>(() => {
    options.log.info({ generation: reloads.number, workers: serving.size }, 'config reloaded');
  });
  let onAllGone: (() => void) | null = null;

  const changed = (): void => {
    options.onChange([...serving].flatMap((child) => child.pid ?? []));
    conditions.changed();
  };

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

  const forget = (child: ChildProcess): void => {
    const served = serving.delete(child);
    waiting.delete(child);
    started.delete(child);
    reloads.confirm(child);
    if (served) changed();
  };

  /** Has a worker drain, as there is another in its place or there is to be none. */
  const retire = (place: KeptProcess, child: ChildProcess): void => {
    forget(child);
    leave(place, child);
    tell(child, { type: 'drain', graceMs: graceMs.replaced } satisfies WorkerOrder);
  };

  const leave = (place: KeptProcess, child: ChildProcess): void => {
    leaving.add(child);
    const [oldest, ...others] = place.running().filter((each) => leaving.has(each));
    if (oldest === undefined || others.length < mostLeaving) return;
    options.log.warn({ worker: oldest.pid }, 'too many workers drain, the oldest is cut');
    tell(oldest, { type: 'cut' } satisfies WorkerOrder);
    setTimeout(() => oldest.kill('SIGKILL'), lastWordsMs).unref();
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
        for (const before of place.running())
          if (before !== child && serving.has(before)) retire(place, before);
        break;
      case 'reloaded':
        if (report.generation !== reloads.number) break;
        if (report.problem !== null)
          options.log.error({ worker: child.pid, reason: report.problem }, 'worker did not reload');
        reloads.confirm(child);
        break;
      case 'draining':
        options.log.info({ worker: child.pid }, 'worker drains on its own');
        forget(child);
        leave(place, child);
        place.replace(child);
        break;
      case 'failed':
        place.markFailed(child, report.reason);
        break;
      default:
        options.onNews(child, report);
    }
  };

  const createPlace = (): KeptProcess => {
    const place: KeptProcess = keepRunning({
      role: 'worker',
      module,
      environment: () => workerEnvironment(headerBytes),
      onMessage(child, message) {
        if (messageType(message) !== null) onMessage(place, child, message as WorkerReport);
      },
      onExit(child) {
        forget(child);
        options.onGone(child, leaving.delete(child) || isDraining);
        conditions.changed();
        if (onAllGone !== null && running().length === 0) onAllGone();
      },
      onGivenUp: options.onGivenUp,
      log: options.log,
    });
    return place;
  };
  const places = Array.from({ length: options.count }, createPlace);
  /** Places that there are to be no more; some worker of theirs may still drain. */
  const closed = new Set<KeptProcess>();
  const running = (): ChildProcess[] => [...places, ...closed].flatMap((place) => place.running());

  const resize = (count: number): void => {
    while (places.length < count) places.push(createPlace());
    for (const place of closed) if (place.running().length === 0) closed.delete(place);
    for (const place of places.splice(count)) {
      place.release();
      closed.add(place);
      for (const child of place.running()) {
        if (serving.has(child)) retire(place, child);
        else if (!leaving.has(child)) child.kill('SIGKILL');
      }
    }
  };

  const isServed = (place: KeptProcess): boolean => place.running().some((child) => serving.has(child));

  /** @returns why no worker came to serve in a place, or null */
  const awaitServed = async (place: KeptProcess, condition: () => boolean): Promise<string | null> => {
    const isOver = (): boolean => isDraining || closed.has(place) || condition();
    await conditions.until(() => isOver() || place.problem !== null, startMs);
    if (isOver()) return null;
    return `a worker with the new settings does not start (${place.problem ?? 'it takes too long'}), those before it serve on`;
  };

  const replaceAll = async (): Promise<string | null> => {
    for (const place of [...places]) {
      const before = new Set(place.running());
      place.renew();
      const isRenewed = (): boolean =>
        place.running().some((child) => serving.has(child) && !before.has(child));
      const problem = await awaitServed(place, isRenewed);
      if (problem !== null) return problem;
    }
    if (!isDraining) options.log.info({ workers: serving.size }, 'workers replaced');
    return null;
  };

  const kill = (): void => {
    for (const place of places) place.release();
    for (const child of running()) child.kill('SIGKILL');
  };

  /** Sends a config to the workers that run. @returns resolves when they have it in force */
  const spread = (config: ResolvedConfig, simulatorUrl: string | null): Promise<void> => {
    current = { config, simulatorUrl };
    const members = [...started];
    const spreading = reloads.begin(members);
    const order: WorkerOrder = { type: 'reload', generation: reloads.number, config, simulatorUrl };
    for (const child of members) tell(child, order);
    startWaiting();
    return spreading;
  };

  return {
    async apply(config, simulatorUrl, count) {
      const before = startedWith;
      const next = startSettings(config);
      headerBytes = config.limits.headerBytes;
      resize(count);
      await spread(config, simulatorUrl);
      if (before !== null && next !== before) {
        // Until all have been replaced, what the workers were started with differs from one to the next.
        startedWith = '';
        const problem = await replaceAll();
        if (problem !== null) return problem;
      }
      startedWith = next;
      if (before === null) return null;
      const problems = await Promise.all(places.map((place) => awaitServed(place, () => isServed(place))));
      return problems.find((problem) => problem !== null) ?? null;
    },
    tellAll(order) {
      const heard = [...started, ...leaving].filter((child) => child.connected);
      for (const child of heard) tell(child, order);
      return heard;
    },
    async drain(limitMs, isReplaced) {
      isDraining = true;
      conditions.changed();
      for (const place of places) place.release();
      if (running().length === 0) return;
      const allGone = new Promise<void>((resolve) => {
        onAllGone = resolve;
      });
      const order: WorkerOrder = {
        type: 'drain',
        graceMs: isReplaced ? graceMs.replaced : graceMs.atEnd,
      };
      for (const child of running()) {
        if (started.has(child) || leaving.has(child)) tell(child, order);
        // It never took a connection, and may not listen to orders yet.
        else child.kill('SIGKILL');
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
    hasten() {
      const order: WorkerOrder = { type: 'drain', graceMs: graceMs.atEnd };
      for (const child of running()) tell(child, order);
    },
    kill,
  };
}
