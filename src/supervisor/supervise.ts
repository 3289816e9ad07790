import { availableParallelism, constants } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { warningsOf } from '../config/notes.js';
import type { ResolvedConfig } from '../config/resolve.js';
import { needsSimulator, snapshotSteps } from '../config/snapshot.js';
import { type FaultPlace, guard } from '../errors.js';
import { createStore, folderRisks, withoutMaking } from '../store/create.js';
import type { WholeStore } from '../store/store.js';
import { formatAuthority } from '../wire/authority.js';
import { inSlices } from '../wire/steps.js';
import { createLeases, type Leases } from './leases.js';
import type { Log } from './log.js';
import { createManagedKeys, type ManagedKeys } from './managed-keys.js';
import { type GatewayReport, replacedSignal } from './messages.js';
import { type AdminAccess, Operations, openAdmin, untilFree } from './operate.js';
import { createReloader, type Reloader } from './reload.js';
import { createSimulatorProcess, type SimulatorProcess } from './simulator.js';
import { announceStoreUse } from './store-use.js';
import { type Claim, claimPlace, endPredecessor, type Predecessor } from './take-over.js';
import { WorkerPool } from './workers.js';

/** Interval at which the store is asked for its risks, and at which an unreachable store is asked again. */
const risksMs = 10_000;
/** The text of a risk may contain a number that changes. */
const numbers = /\d+/g;

/**
 * Logs how stored data may be lost, as soon as that is known. Each risk is logged once.
 * @param store its `risks` must never reject
 * @returns a function that stops it
 */
export function logRisks(
  store: Pick<WholeStore, 'risks'>,
  log: Logger,
  everyMs: number = risksMs,
): () => void {
  const told = new Set<string>();
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;
  const isNew = (risk: string): boolean => told.size < told.add(risk.replace(numbers, '0')).size;
  const attempt = async (): Promise<void> => {
    const risks = (await store.risks()).filter(isNew);
    if (isStopped) return;
    if (risks.length > 0) log.warn({ risks }, 'stored data may be lost');
    timer = setTimeout(() => void attempt(), everyMs).unref();
  };
  void attempt();
  return () => {
    isStopped = true;
    if (timer !== null) clearTimeout(timer);
  };
}

interface SuperviseOptions {
  readonly config: ResolvedConfig;
  /** Absolute path of the config's file. Null for the demo. */
  readonly configPath: string | null;
  /** Whether to replace a gateway that already serves on the port. */
  readonly takeOver: boolean;
  /** Version of the gateway. */
  readonly version: string;
  /**
   * Reads the config again.
   * @throws ConfigError if it cannot be used
   */
  reload(): ResolvedConfig | Promise<ResolvedConfig>;
  /**
   * Leaves SIGHUP to the supervisor from now on.
   * @returns whether one has arrived since reading of the config began
   */
  releaseReloads(): boolean;
  readonly log: Log;
  /** Called once, when every worker listens. */
  onListening(url: string, admin: AdminAccess | null): void;
}

/**
 * One press of Ctrl-C may arrive as two signals: from the terminal, which signals the whole process group, and from
 * `npm`, which forwards it. Only a later signal counts as a second one.
 */
const samePressMs = 500;
/** Longest time that the store has to close. A database that hangs would keep the process for ever. */
const closeMs = 10_000;

/**
 * Runs the gateway from its start to its end: the simulator if needed, the workers, reload on SIGHUP, and drain.
 * SIGTERM, SIGINT or another gateway that takes the port over starts the drain.
 * @returns the exit code of the process, when everything that was started has ended
 * @throws Error if a port is not available
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const { host, port } = options.config.listen;
  const claim = await claimPlace(host, port, options.takeOver);
  return new Supervisor(options, claim).run();
}

class Supervisor {
  readonly #options: SuperviseOptions;
  readonly #port: number;
  readonly #predecessor: Predecessor | null;
  readonly #url: string;
  readonly #logger: Logger;
  readonly #simulator: SimulatorProcess;
  readonly #store: WholeStore;
  /** Rejects if this gateway may not replace the one that serves. */
  readonly #storeChecked: Promise<void>;
  readonly #leases: Leases;
  readonly #pool: WorkerPool;
  readonly #reloader: Reloader;
  readonly #keys: ManagedKeys;
  readonly #stopRisks: () => void;
  #endStoreUse: () => void = () => {};
  readonly #operations: Operations;
  readonly #signals: readonly (readonly [NodeJS.Signals, () => void])[] = [
    ['SIGTERM', () => void this.#stop('SIGTERM')],
    ['SIGINT', () => void this.#stop('SIGINT')],
    ['SIGHUP', () => void this.#reload()],
    [replacedSignal, () => this.#leave()],
  ];
  /** Resolves when all earlier configs have been applied or refused. A config must not overtake another. */
  #applied: Promise<unknown> = Promise.resolve();
  #hasAnnounced = false;
  #hasSucceeded = false;
  #hasEnded = false;
  /** Set when the operators' listener is open, or none is wanted. */
  #isOpen = false;
  /** `at`: time of the last signal. `isReplaced`: another gateway has the port, and no signal to stop has arrived yet. */
  #stopping: { readonly at: number; readonly isReplaced: boolean } | null = null;
  /** That of a drain, or 128 and the number of the signal that ended it. */
  #exitCode = 0;
  /** Aborted to end the time in which requests are still served although the gateway is not ready. */
  readonly #unready = new AbortController();
  #serving: readonly number[] = [];
  #admin: Awaited<ReturnType<typeof openAdmin>> = null;
  #finish: (code: number) => void = () => {};

  constructor(options: SuperviseOptions, { port, predecessor }: Claim) {
    const { config, log } = options;
    const { host, tls } = config.listen;
    this.#options = options;
    this.#port = port;
    this.#predecessor = predecessor;
    this.#url = `${tls === null ? 'http' : 'https'}://${formatAuthority(host, port)}`;
    this.#logger = log.logger;
    this.#simulator = createSimulatorProcess(this.#logger);
    this.#store = withoutMaking(createStore(config.store), config.store);
    // The first call of the store, so that it waits behind no other while tables are brought up to date.
    this.#storeChecked = this.#checkStore();
    this.#leases = createLeases({
      config,
      store: this.#store,
      confirm: (mostMs, except) => this.#pool.confirm(mostMs, except),
      log: this.#logger,
      onFault: (where, fault) => this.#resign('limits', where, fault),
    });
    this.#pool = this.#createPool();
    this.#reloader = createReloader({
      config,
      read: () => options.reload(),
      apply: (next) => this.#apply(next),
      log: this.#logger.child({ file: options.configPath }),
    });
    this.#keys = createManagedKeys({
      store: this.#store,
      config: () => this.#reloader.running,
      tellAll: (order) => void this.#pool.tellAll(order),
      confirm: (mostMs) => this.#pool.confirm(mostMs),
      onChange: (change) => this.#leases.applyKeys(change),
      log: this.#logger,
    });
    this.#stopRisks = logRisks({ risks: () => this.#risks() }, this.#logger);
    this.#operations = this.#createOperations();
  }

  async #risks(): Promise<readonly string[]> {
    const { videos } = this.#reloader.running;
    const found = videos === null ? [] : folderRisks(videos.folder, 'videos.folder');
    // An unreachable store is logged by the parts that need it.
    return [...found, ...(await this.#store.risks().catch(() => []))];
  }

  /**
   * Finds out whether the store can be used by this gateway, which cannot serve much without it. One that cannot be
   * reached is no reason to stay: it may be back at any time, and the gateway before does not reach it either.
   * @throws Error if there is a gateway that serves, and the store refuses this one
   */
  async #checkStore(): Promise<void> {
    const reason = await this.#store.refusal(() =>
      this.#logger.info('the tables of the store are being brought up to date'),
    );
    if (reason === null) return;
    if (this.#isReplacing) throw new Error(`the store cannot be used: ${reason}`);
    this.#logger.error({ reason }, 'the store cannot be used');
  }

  /** Rate limits of an embedded store are granted by the primary, so two gateways grant each of them twice. */
  async #announceStoreUse(): Promise<void> {
    const { store } = this.#options.config;
    if (store.kind !== 'embedded') return;
    const { others, end } = await announceStoreUse(store.path, this.#predecessor?.pid ?? null);
    this.#endStoreUse = end;
    if (this.#stopping !== null) end();
    else if (others.length > 0)
      this.#logger.warn(
        { folder: store.path, processes: others },
        'another gateway uses this store, and each grants the whole of every rate limit: run one gateway a store, or let them share a PostgreSQL',
      );
  }

  /** Whether another gateway serves until this one takes its place. Workers without a primary cannot do so for long. */
  get #isReplacing(): boolean {
    return this.#predecessor !== null && this.#predecessor.pid !== null;
  }

  #createPool(): WorkerPool {
    const { config } = this.#options;
    return new WorkerPool({
      count: workerCount(config),
      host: config.listen.host,
      port: this.#port,
      headerBytes: config.limits.headerBytes,
      log: this.#logger,
      onChange: (serving) => this.#onChange(serving),
      onStart: async (child) => {
        await this.#leases.onStart(child);
        await this.#keys.greet(child);
      },
      onGone: (child, isPlanned) => {
        this.#leases.onGone(child);
        this.#operations.onGone(child, isPlanned);
      },
      onNews: guard(
        'ipc',
        { onFault: (where, fault) => this.#operations.reportFault(where, fault) },
        (child, news) => {
          if (news.type === 'lease-news') this.#leases.onMessage(child, news);
          else if (news.type === 'inspected') this.#operations.onInspected(child, news);
          else this.#operations.onCollected(child, news);
        },
      ),
      onFault: (where, fault) => this.#resign('workers', where, fault),
      onGivenUp: (reason) => this.#abandon(reason),
    });
  }

  #createOperations(): Operations {
    return new Operations({
      version: this.#options.version,
      url: this.#url,
      workers: () => workerCount(this.#reloader.running),
      configPath: this.#options.configPath,
      reloader: this.#reloader,
      store: this.#store,
      keys: this.#keys,
      serving: () => this.#serving,
      isStopping: () => this.#stopping !== null,
      limits: (names) => this.#leases.inspect(names),
      gauges: () => this.#leases.gauges(),
      tellAll: (order) => this.#pool.tellAll(order),
      log: this.#logger,
    });
  }

  /** @returns the exit code of the process, when everything that was started has ended */
  run(): Promise<number> {
    const ended = new Promise<number>((resolve) => {
      this.#finish = resolve;
    });
    process.on('uncaughtException', this.#survive);
    process.on('unhandledRejection', this.#survive);
    for (const [signal, listener] of this.#signals) process.on(signal, listener);
    if (this.#options.releaseReloads()) void this.#reload();
    void this.#announceStoreUse();
    Promise.all([this.#apply(this.#options.config), this.#open()]).catch((error: unknown) =>
      this.#abandon(error instanceof Error ? error.message : String(error)),
    );
    return ended;
  }

  #apply(config: ResolvedConfig): Promise<string | null> {
    const applied = this.#applied.then(() => this.#applyNext(config));
    this.#applied = applied.catch(() => undefined);
    return applied;
  }

  async #applyNext(config: ResolvedConfig): Promise<string | null> {
    const notes = warningsOf(config);
    const [simulatorUrl] = await Promise.all([
      needsSimulator(config) ? this.#simulator.ensure() : null,
      // A client with a key of the store must not be refused because the gateway has just started.
      this.#keys.looked(),
      this.#leases.ready,
      this.#isReplacing ? this.#storeChecked : null,
    ]);
    // Refuses a config that no worker could build before any worker receives it.
    await inSlices(snapshotSteps(config, { simulatorUrl }));
    const workers = workerCount(config);
    if (this.#stopping !== null) return null;
    if (notes.length > 0) this.#logger.warn({ notes }, 'config warning');
    try {
      return await this.#pool.apply({ config, simulatorUrl }, workers, () =>
        this.#leases.apply(config, workers),
      );
    } catch (error) {
      const { running } = this.#reloader;
      await this.#leases.apply(running, workerCount(running));
      throw error;
    }
  }

  async #open(): Promise<void> {
    const { config, takeOver } = this.#options;
    const open = () => openAdmin(config, this.#port, this.#operations, this.#logger);
    const isWanted = (): boolean => this.#stopping === null;
    this.#admin = await (takeOver ? untilFree(open, isWanted, this.#logger) : open());
    this.#isOpen = true;
    this.#announce();
  }

  #onChange(serving: readonly number[]): void {
    this.#serving = serving;
    const report: GatewayReport = { type: 'listening', url: this.#url, port: this.#port, workers: serving };
    process.send?.(report, undefined, undefined, () => {});
    this.#succeed();
    this.#announce();
  }

  #isServed(): boolean {
    return this.#serving.length >= workerCount(this.#reloader.running);
  }

  /** Dismisses the previous gateway once every worker serves. */
  #succeed(): void {
    if (this.#predecessor === null || this.#hasSucceeded || !this.#isServed()) return;
    this.#hasSucceeded = true;
    const isWanted = (): boolean => this.#stopping === null;
    const { unreadyMs } = this.#reloader.running.timeouts;
    void endPredecessor(this.#predecessor, { log: this.#logger, isWanted, unreadyMs });
  }

  #announce(): void {
    if (this.#hasAnnounced || !this.#isOpen || !this.#isServed()) return;
    this.#hasAnnounced = true;
    this.#logger.info({ url: this.#url, port: this.#port, workers: this.#serving }, 'listening');
    this.#options.onListening(this.#url, this.#admin?.access ?? null);
  }

  async #reload(): Promise<void> {
    if (this.#stopping === null) await this.#reloader.reload();
  }

  async #stop(signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
    const before = this.#stopping;
    if (before !== null && !before.isReplaced) {
      const at = performance.now();
      if (signal === 'SIGINT' && at - before.at < samePressMs) return;
      this.#stopping = { at, isReplaced: false };
      this.#cut(signal);
      return;
    }
    this.#stopping = { at: performance.now(), isReplaced: false };
    this.#endStoreUse();
    if (before !== null) {
      this.#pool.hasten();
      return;
    }
    const { drainMs, unreadyMs } = this.#reloader.running.timeouts;
    this.#logger.info({ signal, limitMs: drainMs }, 'draining');
    // A second signal does not wait for this.
    const { signal: ended } = this.#unready;
    if (unreadyMs > 0) await wait(unreadyMs, undefined, { ref: false, signal: ended }).catch(() => undefined);
    await this.#finishCalls(false);
  }

  /** Ends all requests on a second signal, as at the end of a drain. On a third one they end with their workers. */
  #cut(signal: 'SIGTERM' | 'SIGINT'): void {
    if (this.#exitCode !== 0) {
      this.#logger.warn({ signal }, 'third signal: killing the workers');
      this.#end(this.#exitCode);
      return;
    }
    this.#logger.warn({ signal }, 'second signal: ending all requests');
    this.#exitCode = 128 + constants.signals[signal];
    this.#unready.abort();
    this.#pool.cut();
  }

  #leave(): void {
    this.#admin?.close();
    // Balancers need not notice that this gateway ends: the other one serves them.
    this.#unready.abort();
    if (this.#stopping !== null) return;
    this.#stopping = { at: performance.now(), isReplaced: true };
    this.#endStoreUse();
    const { drainMs } = this.#reloader.running.timeouts;
    this.#logger.info({ limitMs: drainMs }, 'replaced by another gateway, draining');
    void this.#finishCalls(true);
  }

  async #finishCalls(isReplaced: boolean): Promise<void> {
    await this.#pool.drain(this.#reloader.running.timeouts.drainMs, isReplaced);
    await this.#leases.leave();
    await this.#simulator.stop();
    this.#logger.info('stopped');
    this.#end(this.#exitCode);
  }

  #abandon(reason: string): void {
    this.#logger.fatal({ reason }, 'the gateway cannot start');
    this.#end(1);
  }

  /**
   * Handles an uncaught exception. What the process holds of keys, of the store and for operators can be read or
   * received again, so it continues. It exits on a fault during its start, and if Node reports that its own state is
   * broken.
   */
  readonly #survive = (error: unknown): void => {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : null;
    if (!this.#hasAnnounced || code === 'ERR_INTERNAL_ASSERTION') this.#resign('process', 'process', error);
    else this.#operations.reportFault('process', error);
  };

  /**
   * Ends this process after a fault that may have left its state inconsistent: units of limits could be granted twice
   * or never, or a place could stay without a worker. The next primary starts with new state. The workers serve until
   * then.
   */
  #resign(state: 'limits' | 'workers' | 'process', where: FaultPlace, fault: unknown): void {
    if (!this.#hasAnnounced) {
      this.#logger.fatal({ err: fault }, 'the gateway cannot start');
      this.#end(1);
      return;
    }
    this.#operations.reportFault(where, fault);
    this.#logger.fatal(
      { state },
      'the state of the primary is unsound: it exits and its workers continue to serve',
    );
    this.#end(1, 'orphan');
  }

  /** @param children what happens to the workers and the simulator */
  #end(code: number, children: 'kill' | 'orphan' = 'kill'): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#stopping ??= { at: performance.now(), isReplaced: false };
    this.#endStoreUse();
    this.#admin?.close();
    this.#leases.stop();
    this.#pool[children]();
    this.#simulator[children]();
    this.#keys.stop();
    this.#stopRisks();
    for (const [signal, listener] of this.#signals) process.removeListener(signal, listener);
    process.off('uncaughtException', this.#survive);
    process.off('unhandledRejection', this.#survive);
    const onLate = (): void => {
      this.#logger.error({ limitMs: closeMs }, 'the store did not close in time');
      process.exit(code);
    };
    // Its connections keep the process, this timer does not.
    setTimeout(onLate, closeMs).unref();
    this.#store
      .close()
      .catch((error: unknown) => this.#logger.error({ err: error }, 'could not close the store'))
      .finally(() => this.#finish(code));
  }
}

function workerCount({ workers }: ResolvedConfig): number {
  return workers === 0 ? availableParallelism() : workers;
}
