import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { type ConfigChange, configChange, configParts } from '../config/change.js';
import type { ResolvedConfig } from '../config/resolve.js';
import type { FaultPlace } from '../errors.js';
import { inSlices, nextSlice } from '../wire/steps.js';
import { heartbeatMs, kernelMs, watchHeartbeats } from './heartbeat.js';
import { type KeptProcess, keepRunning, sendMessage, unrefProcess } from './keep.js';
import {
  graceMs,
  isMessage,
  lastLedgerMs,
  type OrderOf,
  type WorkerNews,
  type WorkerOrder,
  type WorkerReport,
  workerMark,
} from './messages.js';
import { Rounds } from './rounds.js';

const module = fileURLToPath(new URL('../worker.js', import.meta.url));

interface WorkersOptions {
  /** Number of workers until the first `apply`. */
  readonly count: number;
  readonly host: string;
  readonly port: number;
  /** Largest request head that a worker accepts, in bytes. uWS reads it from the environment, once. */
  readonly headerBytes: number;
  readonly log: Logger;
  /** Called when a worker starts or stops serving, with the process ids of those that serve now. */
  onChange(serving: readonly number[]): void;
  /**
   * Called before a worker is sent its start order. Messages sent to it before the promise resolves arrive before that
   * order.
   */
  onStart(child: ChildProcess): Promise<void>;
  /** Called when a worker has exited. `isPlanned` if it was draining or the pool is. */
  onGone(child: ChildProcess, isPlanned: boolean): void;
  /** Called with messages of a worker that do not concern its lifecycle. */
  onNews(child: ChildProcess, news: WorkerNews): void;
  /** Called on an internal error. The pool's state may no longer match its workers. */
  onFault(where: FaultPlace, fault: unknown): void;
  onGivenUp(reason: string): void;
}

/**
 * Time between the order to end all requests and SIGKILL. A worker uses it to end on its own, notify its clients and
 * record their usage. After the limit of a drain, the ledger has its time in addition.
 */
const lastWordsMs = 4000;
/** Longest wait for a successor to serve. */
const startMs = 30_000;
/** Longest wait for workers to stop listening. */
const stopMs = 5000;
/** Most draining workers in one place. If there are more, the oldest is ended. */
const mostLeaving = 4;

/** Input of a worker's snapshot. */
interface RunningConfig {
  readonly config: ResolvedConfig;
  readonly simulatorUrl: string | null;
}

/** The order that follows the parts of a config. */
type ConfigOrder = OrderOf<'start' | 'reload'>;

/** Forks the workers immediately, before the config or the simulator is ready, and keeps them running. */
export class WorkerPool {
  readonly #options: WorkersOptions;
  readonly #log: Logger;
  readonly #waiting = new Set<ChildProcess>();
  /** The config last sent to each worker, or being sent. */
  readonly #told = new WeakMap<ChildProcess, ResolvedConfig>();
  /** Resolves when everything queued for a worker has been sent. */
  readonly #telling = new WeakMap<ChildProcess, Promise<void>>();
  readonly #started = new Set<ChildProcess>();
  readonly #serving = new Set<ChildProcess>();
  /** Workers that drain. Others have taken their places, or the places are gone. */
  readonly #leaving = new Set<ChildProcess>();
  readonly #places: KeptProcess[];
  /** Places that were closed because fewer workers are wanted. Their last workers may still drain. */
  readonly #closed = new Set<KeptProcess>();
  #current: RunningConfig | null = null;
  /**
   * The settings that all workers were started with and cannot change. Empty while they differ between workers, null
   * before the start.
   */
  #startedWith: string | null = null;
  #headerBytes: number;
  /** Number of workers wanted. */
  #count: number;
  #isDraining = false;
  /** Set while a config is prepared: workers that become ready wait. */
  #holdsStarts = false;
  #onAllGone: (() => void) | null = null;
  readonly #conditions = createConditions();
  /** The answer is why a worker did not apply a config, or null. */
  readonly #reloads = new Rounds<ChildProcess, string | null>();
  readonly #stops = new Rounds<ChildProcess, null>();
  readonly #confirmations = new Rounds<ChildProcess, null>();
  #graceMs: number = graceMs.replaced;
  // A hanging worker keeps its share of new connections as long as it holds its port, and answers none of them.
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
   * Sets the number of workers and their config. Starts the waiting workers and sends the config to the running ones.
   * If a setting changes that a worker reads only at its start, all workers are replaced, one after another. A
   * successor serves before its predecessor drains.
   * @param prepare runs first. A worker that becomes ready meanwhile starts after it. With the previous config it would
   * request limits that the primary no longer has.
   * @returns null when all workers have applied it, or the reason why some of them were not replaced
   * @throws Error if a worker cannot apply it. All workers then have the previous config.
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
      // Until all have been replaced, the start settings differ between workers.
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

  /**
   * Sends an order to every worker that serves or drains.
   * @returns the workers it was sent to
   */
  tellAll(order: WorkerOrder): readonly ChildProcess[] {
    return tellEach(this.#heard(), order);
  }

  /**
   * Waits until every worker that serves or drains has read what it was sent, and has put the keys of it in force.
   * @param mostMs longest wait. A worker that hangs must not delay the others for longer.
   * @param except workers that are not waited for
   * @returns the workers that have not confirmed it in that time
   */
  async confirm(
    mostMs: number,
    except: ReadonlySet<ChildProcess> = new Set(),
  ): Promise<readonly ChildProcess[]> {
    const children = this.#heard().filter((child) => !except.has(child));
    const { missing } = await this.#confirm(children, mostMs);
    return missing;
  }

  /**
   * Lets requests in flight end, for at most `limitMs`, and waits until every worker has exited.
   * @param isReplaced another gateway serves the port, so clients have time to reconnect to it
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
    // The others never accepted a connection, and may not read orders yet.
    for (const child of this.#running()) if (!takers.includes(child)) child.kill('SIGKILL');
    await this.#drainTogether(takers);
    const timer = setTimeout(
      () => {
        this.#log.warn(
          { workers: this.#running().length },
          'workers did not exit by the drain limit: killing them',
        );
        this.kill();
      },
      limitMs + lastLedgerMs.least + lastWordsMs,
    );
    await allGone;
    clearTimeout(timer);
    clearInterval(this.#looking);
  }

  /** Shortens the grace period of a drain to that of a gateway that ends. */
  hasten(): void {
    this.#graceMs = graceMs.atEnd;
    this.#tellToDrain(this.#running());
  }

  /** Breaks off all requests. Their usage is recorded. */
  cut(): void {
    for (const place of this.#places) place.release();
    for (const child of this.#running()) sendMessage(child, { type: 'cut' } satisfies WorkerOrder);
    setTimeout(() => this.kill(), lastWordsMs).unref();
  }

  kill(): void {
    for (const place of this.#places) place.release();
    for (const child of this.#running()) child.kill('SIGKILL');
  }

  /** Lets workers that serve or drain continue without this process, which is about to exit. */
  orphan(): void {
    clearInterval(this.#looking);
    for (const place of this.#places) place.release();
    for (const child of this.#running()) {
      unrefProcess(child);
      // The exit of this process does not wait for an answer.
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
      case 'confirmed':
        this.#confirmations.onAnswer(child, report.number, null);
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
    this.#confirmations.onGone(child);
    this.#forget(child);
    this.#options.onGone(child, this.#leaving.delete(child) || this.#isDraining);
    this.#conditions.changed();
    if (this.#onAllGone !== null && this.#running().length === 0) this.#onAllGone();
  }

  #changed(): void {
    this.#options.onChange([...this.#serving].flatMap((child) => child.pid ?? []));
    this.#conditions.changed();
  }

  /**
   * Runs `prepare`. A worker that becomes ready meanwhile starts with the next config, or with the present one if
   * `prepare` fails.
   */
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

  /** Removes a worker from its place because another has taken it or it is closed. The worker is to drain. */
  #retire(place: KeptProcess, child: ChildProcess): void {
    this.#forget(child);
    this.#leave(place, child);
  }

  /**
   * Drains several workers. Clients reconnect immediately when their connection ends, and the kernel resets connections
   * that wait for a listener when it closes. Therefore all workers stop listening before any of them drains.
   */
  async #drainTogether(children: readonly ChildProcess[]): Promise<void> {
    await this.#stops.begin((number) => {
      for (const child of children)
        sendMessage(child, { type: 'stop-listening', number } satisfies WorkerOrder);
      return children;
    }, stopMs);
    this.#tellToDrain(children);
  }

  #tellToDrain(children: readonly ChildProcess[]): void {
    for (const child of children)
      sendMessage(child, { type: 'drain', graceMs: this.#graceMs } satisfies WorkerOrder);
  }

  #leave(place: KeptProcess, child: ChildProcess): void {
    this.#leaving.add(child);
    const [oldest, ...others] = place.running().filter((each) => this.#leaving.has(each));
    if (oldest === undefined || others.length < mostLeaving) return;
    this.#log.warn({ worker: oldest.pid }, 'too many workers are draining: ending the oldest');
    sendMessage(oldest, { type: 'cut' } satisfies WorkerOrder);
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

  /**
   * Waits until a worker serves in a place.
   * @returns why none does, or null
   */
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
   * Sends a config to the running workers and waits until all of them have applied it.
   * @throws Error if one of them cannot apply it. All are then sent the previous config: two configs at once would
   * permit everything that either of them permits.
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
      // Nearly always all workers have the same config.
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

  /**
   * Sends a worker the parts of a config change and then the order. Queued behind all config changes sent to it
   * earlier.
   */
  #tellInTurn(child: ChildProcess, change: Promise<ConfigChange>, order: ConfigOrder): void {
    const before = this.#telling.get(child);
    const work = async (): Promise<void> => {
      await before;
      await this.#tellChange(child, await change, order);
    };
    this.#telling.set(
      child,
      work().catch((fault: unknown) => this.#options.onFault('process', fault)),
    );
  }

  /** Sends the parts in several turns of the event loop, few at a time. */
  async #tellChange(child: ChildProcess, change: ConfigChange, order: ConfigOrder): Promise<void> {
    let left = partsAhead[order.type];
    for (const part of configParts(change)) {
      await nextSlice();
      if (!child.connected) return;
      sendMessage(child, { type: 'config-part', part } satisfies WorkerOrder);
      if (--left > 0) continue;
      left = partsAhead[order.type];
      await this.#confirm([child], null);
    }
    sendMessage(child, order);
  }

  #heard(): readonly ChildProcess[] {
    return [...this.#started, ...this.#leaving].filter((child) => child.connected);
  }

  #confirm(children: readonly ChildProcess[], mostMs: number | null) {
    return this.#confirmations.begin((number) => tellEach(children, { type: 'confirm', number }), mostMs);
  }
}

function tellEach(children: readonly ChildProcess[], order: WorkerOrder): readonly ChildProcess[] {
  for (const child of children) sendMessage(child, order);
  return children;
}

function changeFrom(before: ResolvedConfig | null, next: ResolvedConfig): Promise<ConfigChange> {
  return inSlices(configChange(before, next));
}

/**
 * Parts that are sent before the worker has read them. A worker that waits for the processor reads everything that has
 * accumulated in the channel in one turn of its event loop. One that does not serve yet has no clients, so it is sent
 * more.
 */
const partsAhead = { start: 32, reload: 4 } as const;

/** Serializes the settings that a worker reads only at its start, to compare them. */
function startSettings({ listen, limits, sockets }: ResolvedConfig): string {
  return JSON.stringify([listen.tls, limits.headerBytes, sockets.idleMs, sockets.messageBytes]);
}

/** V8's default. */
const usualThreads = 4;

/**
 * Number of V8 background threads of each worker, for garbage collection and compilation. They share the cores with all
 * workers. While a large heap is marked, all of them run, each with the same part of a core as the worker. With four
 * threads on one core, the worker had a fifth of it, for half a second with 100,000 keys. With one thread it has half.
 */
export function backgroundThreads(cores: number, workers: number): number {
  return Math.max(1, Math.min(usualThreads, Math.floor(cores / workers)));
}

/**
 * Environment of a worker's process.
 * @param headerBytes largest request head that it accepts. uWS reads it from the environment, once.
 */
function workerEnvironment(headerBytes: number, workers: number): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: options = '' } = process.env;
  return {
    // glibc raises this threshold when the first large block is freed, and then keeps large request bodies in its heap.
    // A worker stayed at 290 MB after a peak of 310 MB, instead of returning to 70 MB.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...process.env,
    UWS_HTTP_MAX_HEADERS_SIZE: String(headerBytes),
    // If an option occurs twice, the last one applies.
    NODE_OPTIONS: `--v8-pool-size=${backgroundThreads(availableParallelism(), workers)} ${options}`.trim(),
  };
}

/** Lets callers wait for conditions that are checked whenever something changes. */
export function createConditions() {
  const looks = new Set<() => void>();
  return {
    /** Checks all conditions again. */
    changed(): void {
      for (const look of [...looks]) look();
    },
    /** @returns true when the condition holds, false if it does not within `ms` */
    until(condition: () => boolean, ms: number): Promise<boolean> {
      if (condition()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          looks.delete(look);
          resolve(condition());
        };
        const look = (): void => {
          if (condition()) done();
        };
        const timer = setTimeout(done, ms);
        looks.add(look);
      });
    },
  };
}
