import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { type ConfigChange, configChange, configParts } from '../config/change.js';
import type { ResolvedConfig } from '../config/resolve.js';
import type { FaultPlace } from '../errors.js';
import { inSlices, nextSlice } from '../wire/steps.js';
import { heartbeatMs, kernelMs, watchHeartbeats } from './heartbeat.js';
import { disown, type KeptProcess, keepRunning, tell, told } from './keep.js';
import {
  graceMs,
  isMessage,
  type OrderOf,
  type WorkerNews,
  type WorkerOrder,
  type WorkerReport,
  workerMark,
} from './messages.js';
import { Rounds } from './rounds.js';

const module = fileURLToPath(new URL('../worker.js', import.meta.url));

interface WorkersOptions {
  /** How many workers there are until `apply` says otherwise. */
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Bytes of a request's head that a worker accepts; uWS reads it from the environment, once. */
  readonly headerBytes: number;
  readonly log: Logger;
  /** A worker began or ceased to serve: these process ids do now. */
  onChange(serving: readonly number[]): void;
  /** A worker is about to be told to start: what it is told until this resolves, it knows before it listens. */
  onStart(child: ChildProcess): Promise<void>;
  /** A worker is gone, with all that it held; `isPlanned` when it was to end, or another has its place. */
  onGone(child: ChildProcess, isPlanned: boolean): void;
  /** What a worker tells that is not of its life. */
  onNews(child: ChildProcess, news: WorkerNews): void;
  /** A mistake of ours: what is noted here of the workers may no longer be true. */
  onFault(where: FaultPlace, fault: unknown): void;
  onGivenUp(reason: string): void;
}

/**
 * A worker is killed so long after the limit of its drain: until then it ends by itself, tells its clients, and writes down
 * what these have used.
 */
const lastWordsMs = 4000;
/** Longest wait for a successor. */
const startMs = 30_000;
/** Longest wait for workers to cease to listen. */
const stopMs = 5000;
/** Workers of one place that still drain; the oldest is cut when there are more. */
const mostLeaving = 4;

/** What a worker's snapshot is built from. */
interface RunningConfig {
  readonly config: ResolvedConfig;
  readonly simulatorUrl: string | null;
}

/** What is to be done with a config that was told. */
type ConfigOrder = OrderOf<'start' | 'reload'>;

/** Forks the workers at once, while the config or the simulator may still be on their way, and keeps them running. */
export class WorkerPool {
  readonly #options: WorkersOptions;
  readonly #log: Logger;
  readonly #waiting = new Set<ChildProcess>();
  /** The config that each was told last, or is being told. */
  readonly #told = new WeakMap<ChildProcess, ResolvedConfig>();
  /** Over when each was told all of it. */
  readonly #telling = new WeakMap<ChildProcess, Promise<void>>();
  readonly #started = new Set<ChildProcess>();
  readonly #serving = new Set<ChildProcess>();
  /** They drain on their own, and others have their places. */
  readonly #leaving = new Set<ChildProcess>();
  readonly #places: KeptProcess[];
  /** Places that were given up, since there are to be fewer workers; some worker of theirs may still drain. */
  readonly #closed = new Set<KeptProcess>();
  #current: RunningConfig | null = null;
  /** What all workers were started with that they cannot change. */
  #startedWith: string | null = null;
  #headerBytes: number;
  /** How many workers there are to be. */
  #count: number;
  #isDraining = false;
  /** While a config is prepared, workers that become ready are not started. */
  #holdsStarts = false;
  #onAllGone: (() => void) | null = null;
  readonly #conditions = createConditions();
  /** Each answers why it has not put a config in force, or null. */
  readonly #reloads = new Rounds<ChildProcess, string | null>();
  readonly #stops = new Rounds<ChildProcess, null>();
  #graceMs: number = graceMs.replaced;
  // A worker that hangs keeps its share of new connections for as long as it has its port, and would answer none of them.
  readonly #heartbeats = watchHeartbeats<ChildProcess>(
    (child) => {
      this.#log.error({ worker: child.pid }, 'worker hangs: killing and replacing it');
      child.kill('SIGKILL');
    },
    (child) => kernelMs(child.pid),
  );
  readonly #looking = setInterval(() => this.#heartbeats.look(), heartbeatMs).unref();

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#headerBytes = options.headerBytes;
    this.#count = options.count;
    this.#places = Array.from({ length: options.count }, () => this.#createPlace());
  }

  /**
   * Sets how many workers there are and what they run with, starts those that wait for it, and sends it to those that
   * run. Where something changes that a worker takes up only when it starts, all are replaced, one after another: the
   * successor serves before the one before it drains.
   * @param prepare is done first. A worker that becomes ready meanwhile starts after it: with the config before, it would ask
   * for limits that the primary does not have any more
   * @returns resolves when all have it in force, or with the reason why some that were to be replaced were not
   * @throws Error when a worker cannot put it in force: then all have in force what they had before
   */
  async apply(
    { config, simulatorUrl }: RunningConfig,
    count: number,
    prepare: () => Promise<void>,
  ): Promise<string | null> {
    const before = this.#startedWith;
    const next = startSettings(config);
    await this.#withoutStarts(prepare);
    if (this.#isDraining) return null;
    await this.#spread({ config, simulatorUrl });
    if (this.#isDraining) return null;
    this.#headerBytes = config.limits.headerBytes;
    this.#count = count;
    this.#resize(count);
    if (before !== null && next !== before) {
      // Until all have been replaced, what the workers were started with differs from one to the next.
      this.#startedWith = '';
      const problem = await this.#replaceAll();
      if (problem !== null) return problem;
    }
    this.#startedWith = next;
    if (before === null) return null;
    const problems = await Promise.all(
      this.#places.map((place) => this.#awaitServed(place, () => this.#isServed(place))),
    );
    return problems.find((problem) => problem !== null) ?? null;
  }

  /** Tells every worker that serves or drains. @returns to whom it was told */
  tellAll(order: WorkerOrder): readonly ChildProcess[] {
    const heard = [...this.#started, ...this.#leaving].filter((child) => child.connected);
    for (const child of heard) tell(child, order);
    return heard;
  }

  /**
   * Lets requests in flight end, for at most `limitMs`, and waits until every worker is gone.
   * @param isReplaced another gateway serves the port, so that there is time for clients to go there
   */
  async drain(limitMs: number, isReplaced: boolean): Promise<void> {
    this.#isDraining = true;
    this.#conditions.changed();
    for (const place of this.#places) place.release();
    if (this.#running().length === 0) return;
    const allGone = new Promise<void>((resolve) => {
      this.#onAllGone = resolve;
    });
    if (!isReplaced) this.#graceMs = graceMs.atEnd;
    const takers = this.#running().filter((child) => this.#started.has(child) || this.#leaving.has(child));
    // The others never took a connection, and may not listen to orders yet.
    for (const child of this.#running()) if (!takers.includes(child)) child.kill('SIGKILL');
    await this.#drainTogether(takers);
    const timer = setTimeout(() => {
      this.#log.warn(
        { workers: this.#running().length },
        'workers did not exit by the drain limit: killing them',
      );
      this.kill();
    }, limitMs + lastWordsMs);
    await allGone;
    clearTimeout(timer);
    clearInterval(this.#looking);
  }

  /** Gives clients no more time during a drain than at the end of a gateway. */
  hasten(): void {
    this.#graceMs = graceMs.atEnd;
    this.#tellToDrain(this.#running());
  }

  kill(): void {
    for (const place of this.#places) place.release();
    for (const child of this.#running()) child.kill('SIGKILL');
  }

  /** Lets those that serve or drain go on without this process, which is about to end. */
  orphan(): void {
    clearInterval(this.#looking);
    for (const place of this.#places) place.release();
    for (const child of this.#running()) {
      disown(child);
      // The end of this process waits for nobody's answer.
      this.#stops.onGone(child);
    }
    this.#onAllGone?.();
  }

  #createPlace(): KeptProcess {
    const place: KeptProcess = keepRunning({
      role: 'worker',
      module,
      arguments: [workerMark, String(process.pid)],
      environment: () => workerEnvironment(this.#headerBytes, this.#count),
      onMessage: (child, message) => {
        if (isMessage<WorkerReport>(message)) this.#onMessage(place, child, message);
      },
      onExit: (child) => this.#onExit(child),
      onGivenUp: (reason) => this.#options.onGivenUp(reason),
      onFault: (where, fault) => this.#options.onFault(where, fault),
      log: this.#log,
    });
    return place;
  }

  #onMessage(place: KeptProcess, child: ChildProcess, report: WorkerReport): void {
    switch (report.type) {
      case 'ready':
        this.#waiting.add(child);
        this.#startWaiting();
        break;
      case 'listening':
        this.#onListening(place, child);
        break;
      case 'stopped-listening':
        this.#stops.onAnswer(child, report.number, null);
        break;
      case 'alive':
        this.#heartbeats.beat(child);
        break;
      case 'reloaded':
        if (report.problem !== null)
          this.#log.error({ worker: child.pid, reason: report.problem }, 'worker did not reload');
        this.#reloads.onAnswer(child, report.number, report.problem);
        break;
      case 'draining':
        this.#log.info({ worker: child.pid }, 'worker drains on its own');
        this.#forget(child);
        this.#leave(place, child);
        place.replace(child);
        break;
      case 'failed':
        place.markFailed(child, report.reason);
        break;
      default:
        this.#options.onNews(child, report);
    }
  }

  #onListening(place: KeptProcess, child: ChildProcess): void {
    place.markServing(child);
    this.#serving.add(child);
    this.#heartbeats.beat(child);
    this.#changed();
    const relieved = place.running().filter((before) => before !== child && this.#serving.has(before));
    for (const before of relieved) this.#retire(place, before);
    if (relieved.length > 0) void this.#drainTogether(relieved);
  }

  #onExit(child: ChildProcess): void {
    this.#heartbeats.forget(child);
    this.#stops.onGone(child);
    this.#forget(child);
    this.#options.onGone(child, this.#leaving.delete(child) || this.#isDraining);
    this.#conditions.changed();
    if (this.#onAllGone !== null && this.#running().length === 0) this.#onAllGone();
  }

  #changed(): void {
    this.#options.onChange([...this.#serving].flatMap((child) => child.pid ?? []));
    this.#conditions.changed();
  }

  /** A worker that became ready meanwhile starts with the config that follows; where `prepare` fails, at once with the present one. */
  async #withoutStarts(prepare: () => Promise<void>): Promise<void> {
    this.#holdsStarts = true;
    try {
      await prepare();
      this.#holdsStarts = false;
    } catch (error) {
      this.#holdsStarts = false;
      this.#startWaiting();
      throw error;
    }
  }

  #startWaiting(): void {
    if (this.#current === null || this.#holdsStarts) return;
    const { host, port } = this.#options;
    for (const child of this.#waiting) {
      this.#started.add(child);
      this.#telling.set(child, this.#options.onStart(child));
      const { config, simulatorUrl } = this.#current;
      this.#told.set(child, config);
      this.#tellInTurn(child, changeFrom(null, config), { type: 'start', simulatorUrl, host, port });
    }
    this.#waiting.clear();
  }

  #forget(child: ChildProcess): void {
    const served = this.#serving.delete(child);
    this.#waiting.delete(child);
    this.#started.delete(child);
    this.#reloads.onGone(child);
    if (served) this.#changed();
  }

  /** Takes a worker out of its place, as there is another in it or there is to be none: it is to drain. */
  #retire(place: KeptProcess, child: ChildProcess): void {
    this.#forget(child);
    this.#leave(place, child);
  }

  /**
   * Clients that are told to leave come back at once, and the system resets those that wait for a listener when it is
   * closed: so no worker tells its clients before all of these have ceased to listen.
   */
  async #drainTogether(children: readonly ChildProcess[]): Promise<void> {
    await this.#stops.begin((number) => {
      for (const child of children) tell(child, { type: 'stop-listening', number } satisfies WorkerOrder);
      return children;
    }, stopMs);
    this.#tellToDrain(children);
  }

  #tellToDrain(children: readonly ChildProcess[]): void {
    for (const child of children)
      tell(child, { type: 'drain', graceMs: this.#graceMs } satisfies WorkerOrder);
  }

  #leave(place: KeptProcess, child: ChildProcess): void {
    this.#leaving.add(child);
    const [oldest, ...others] = place.running().filter((each) => this.#leaving.has(each));
    if (oldest === undefined || others.length < mostLeaving) return;
    this.#log.warn({ worker: oldest.pid }, 'too many workers are draining: ending the oldest');
    tell(oldest, { type: 'cut' } satisfies WorkerOrder);
    setTimeout(() => oldest.kill('SIGKILL'), lastWordsMs).unref();
  }

  #running(): ChildProcess[] {
    return [...this.#places, ...this.#closed].flatMap((place) => place.running());
  }

  #resize(count: number): void {
    const places = this.#places;
    while (places.length < count) places.push(this.#createPlace());
    for (const place of this.#closed) if (place.running().length === 0) this.#closed.delete(place);
    const surplus: ChildProcess[] = [];
    for (const place of places.splice(count)) {
      place.release();
      this.#closed.add(place);
      for (const child of place.running()) {
        if (this.#serving.has(child)) {
          this.#retire(place, child);
          surplus.push(child);
        } else if (!this.#leaving.has(child)) child.kill('SIGKILL');
      }
    }
    if (surplus.length > 0) void this.#drainTogether(surplus);
  }

  #isServed(place: KeptProcess): boolean {
    return place.running().some((child) => this.#serving.has(child));
  }

  /** @returns why no worker came to serve in a place, or null */
  async #awaitServed(place: KeptProcess, condition: () => boolean): Promise<string | null> {
    const isOver = (): boolean => this.#isDraining || this.#closed.has(place) || condition();
    await this.#conditions.until(() => isOver() || place.problem !== null, startMs);
    if (isOver()) return null;
    return `a worker with the new settings does not start (${place.problem ?? 'it takes too long'}), those before it serve on`;
  }

  async #replaceAll(): Promise<string | null> {
    for (const place of [...this.#places]) {
      const before = new Set(place.running());
      place.renew();
      const isRenewed = (): boolean =>
        place.running().some((child) => this.#serving.has(child) && !before.has(child));
      const problem = await this.#awaitServed(place, isRenewed);
      if (problem !== null) return problem;
    }
    if (!this.#isDraining) this.#log.info({ workers: this.#serving.size }, 'workers replaced');
    return null;
  }

  /**
   * Sends a config to the workers that run, and waits until all of them have it in force.
   * @throws Error when one of them has not: then all have been sent the one before, since two at once would let in
   * whatever either of them does
   */
  async #spread(next: RunningConfig): Promise<void> {
    const before = this.#current;
    const { answers } = await this.#tellConfig(next);
    const problem = answers.find((answer) => answer !== null);
    if (problem === undefined) {
      if (before !== null) this.#log.info({ workers: this.#serving.size }, 'config reloaded');
      return;
    }
    if (before !== null) await this.#tellConfig(before);
    throw new Error(`a worker cannot put it in force (${problem})`);
  }

  #tellConfig(next: RunningConfig) {
    this.#current = next;
    const { config, simulatorUrl } = next;
    const answered = this.#reloads.begin((number) => {
      // Nearly always all have been told the same.
      const changes = new Map<ResolvedConfig, Promise<ConfigChange>>();
      for (const child of this.#started) {
        const before = this.#told.get(child) ?? config;
        const change = changes.get(before) ?? changeFrom(before, config);
        changes.set(before, change);
        this.#told.set(child, config);
        this.#tellInTurn(child, change, { type: 'reload', number, simulatorUrl });
      }
      return [...this.#started];
    });
    this.#startWaiting();
    return answered;
  }

  /** Tells a worker how its config changes, part by part, and then what to do with it: after all that it was told of configs before. */
  #tellInTurn(child: ChildProcess, change: Promise<ConfigChange>, order: ConfigOrder): void {
    const before = this.#telling.get(child);
    const work = async (): Promise<void> => {
      await before;
      await tellChange(child, await change, order);
    };
    this.#telling.set(
      child,
      work().catch((fault: unknown) => this.#options.onFault('process', fault)),
    );
  }
}

function changeFrom(before: ResolvedConfig | null, next: ResolvedConfig): Promise<ConfigChange> {
  return inSlices(configChange(before, next));
}

/** A worker that does not serve yet keeps nobody waiting: it is sent its config in larger turns. */
const partsOfTurn = { start: 8, reload: 1 } as const;

/**
 * Sends one part or a few in each turn of the event loop, each once the one before has left: a worker reads at once whatever
 * has gathered in the channel.
 */
async function tellChange(child: ChildProcess, change: ConfigChange, order: ConfigOrder): Promise<void> {
  let left = 0;
  for (const part of configParts(change)) {
    if (left === 0) await nextSlice();
    left = (left || partsOfTurn[order.type]) - 1;
    await told(child, { type: 'config-part', part } satisfies WorkerOrder);
    if (!child.connected) return;
  }
  tell(child, order);
}

/** What a worker takes up only when it starts, as text that differs when any of it does. */
function startSettings({ listen, limits, sockets }: ResolvedConfig): string {
  return JSON.stringify([listen.tls, limits.headerBytes, sockets.idleMs, sockets.messageBytes]);
}

/** V8 starts so many unless it is told otherwise. */
const usualThreads = 4;

/**
 * Threads that collect garbage and compile beside a worker's own, on the cores that all workers share. While a large heap
 * is marked, all of them run for as long as that takes, and each has the same part of a core as the worker: with four on
 * one core the worker had a fifth of it, for half a second with 100,000 keys; with one it has half.
 */
export function backgroundThreads(cores: number, workers: number): number {
  return Math.max(1, Math.min(usualThreads, Math.floor(cores / workers)));
}

/**
 * What must be set before a worker's process starts.
 * @param headerBytes of a request's head that it accepts; uWS reads it from the environment, once
 */
function workerEnvironment(headerBytes: number, workers: number): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: options = '' } = process.env;
  return {
    // glibc raises this threshold with the first large block that is freed, and then keeps large request bodies in
    // its heap: a worker stayed at 290 MB after a peak of 310, instead of going back to 70.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...process.env,
    UWS_HTTP_MAX_HEADERS_SIZE: String(headerBytes),
    // Of options that come twice the last one holds.
    NODE_OPTIONS: `--v8-pool-size=${backgroundThreads(availableParallelism(), workers)} ${options}`.trim(),
  };
}

/** Lets conditions be waited for that are looked at whenever something changes. */
export function createConditions() {
  const looks = new Set<() => void>();
  return {
    /** Something has changed that a condition may look at. */
    changed(): void {
      for (const look of [...looks]) look();
    },
    /** @returns whether the condition came true, or false when it did not within `ms` */
    until(condition: () => boolean, ms: number): Promise<boolean> {
      if (condition()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const settle = (): void => {
          clearTimeout(timer);
          looks.delete(look);
          resolve(condition());
        };
        const look = (): void => {
          if (condition()) settle();
        };
        const timer = setTimeout(settle, ms);
        looks.add(look);
      });
    },
  };
}
