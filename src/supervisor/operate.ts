import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type AdminSources, adminRoutes } from '../admin/endpoints.js';
import type { LimitInUse } from '../admin/limits.js';
import { type AdminListener, startAdmin } from '../admin/listener.js';
import { liveStateSteps } from '../admin/live.js';
import { createLiveStream, type LiveStream } from '../admin/live-stream.js';
import { demoKeys } from '../config/demo.js';
import { isOneAddress } from '../config/networks.js';
import type { AdminSettings, ResolvedConfig } from '../config/resolve.js';
import type { FaultPlace } from '../errors.js';
import type { OwnedUnits } from '../limits/pool-owner.js';
import type { CollectedMetrics } from '../metrics/collected.js';
import { expositionTexts, type PrimaryGauge, primaryGauge } from '../metrics/exposition.js';
import { createHistory, historyStepMs } from '../metrics/history.js';
import type { Inspection } from '../metrics/inspection.js';
import type { GatewayView } from '../metrics/live-state.js';
import { createTotals } from '../metrics/totals.js';
import type { Ledger, Store, WholeStore } from '../store/store.js';
import { formatAuthority } from '../wire/authority.js';
import { inSlices, type Steps, textInSlices } from '../wire/steps.js';
import type { ManagedKeys } from './managed-keys.js';
import type { Collected, Inspected, WorkerOrder } from './messages.js';
import { PortInUseError, portError, type SocketError } from './port.js';
import type { Reloader } from './reload.js';
import { Rounds } from './rounds.js';

/** The primary's state and functions that the operators' listener uses. */
interface OperatedGateway {
  readonly version: string;
  readonly url: string;
  /** Number of workers wanted. */
  workers(): number;
  /** Absolute path. Null for the demo. */
  readonly configPath: string | null;
  readonly reloader: Reloader;
  /** The store of the workers. The primary opens it on first use. */
  readonly store: Store & Ledger & Pick<WholeStore, 'size'>;
  readonly keys: Pick<ManagedKeys, 'desk' | 'count'>;
  /** Process ids of the workers that serve now. */
  serving(): readonly number[];
  isStopping(): boolean;
  /** The limits with these names, and those of which workers have other units than their slices. */
  limits(names: Iterable<string>): Promise<readonly OwnedUnits[]>;
  /** Current gauges of parts of the primary. */
  gauges(): readonly PrimaryGauge[];
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  readonly log: Logger;
}

/** Longest wait for a worker's answer. A stuck worker must not delay what the others report. */
const answerMs = 1000;

/** The operators' side of a gateway. */
export class Operations {
  readonly sources: AdminSources;
  readonly #gateway: OperatedGateway;
  readonly #startedAt = Date.now();
  readonly #totals = createTotals();
  /** Resolves when all metrics received so far are added. They are added in order, in slices. */
  #adding: Promise<void> = Promise.resolve();
  readonly #faults = new Map<FaultPlace, number>();
  /** When a worker has answered, its counts are in `#totals`. */
  readonly #counts = new Rounds<ChildProcess, null>();
  readonly #inspections = new Rounds<ChildProcess, Inspection>();
  readonly #history = createHistory();
  readonly #stream: LiveStream;
  /** Runs while the last hour is recorded. */
  #timer: NodeJS.Timeout | null = null;
  #restarts = 0;

  constructor(gateway: OperatedGateway) {
    this.#gateway = gateway;
    this.#stream = createLiveStream({
      history: () => this.#history.points(),
      state: async () => {
        const [merged, inspections] = await Promise.all([this.#counted(), this.#inspect()]);
        return inSlices(liveStateSteps({ at: Date.now(), gateway: this.#view(), merged, inspections }));
      },
      log: gateway.log,
    });
    this.sources = this.#createSources();
  }

  /** Starts recording the last hour. Called when the operators' listener opens. */
  start(): void {
    if (this.#timer !== null) return;
    this.#history.add(this.#totals.merged(), Date.now());
    this.#timer = setInterval(() => {
      this.#sample().catch((error: unknown) =>
        this.#gateway.log.error({ err: error }, 'the history has no point of this time'),
      );
    }, historyStepMs).unref();
  }

  /** Stops recording, and ends the console's streams. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#stream.close();
  }

  /** Counts and logs an internal error of this process. */
  reportFault(where: FaultPlace, fault: unknown): void {
    this.#faults.set(where, (this.#faults.get(where) ?? 0) + 1);
    this.#gateway.log.error({ where, err: fault }, 'internal error');
  }

  onCollected(child: ChildProcess, { id, snapshot }: Collected): void {
    const { pid } = child;
    if (pid === undefined) return;
    this.#add(async () => {
      await inSlices(this.#totals.updateSteps(pid, snapshot));
      this.#counts.onAnswer(child, id, null);
    });
  }

  #add(work: () => Promise<void>): void {
    this.#adding = this.#adding.then(work).catch((fault: unknown) => this.reportFault('ipc', fault));
  }

  onInspected(child: ChildProcess, { id, inspection }: Inspected): void {
    this.#inspections.onAnswer(child, id, inspection);
  }

  /** @param isPlanned the worker was to end */
  onGone(child: ChildProcess, isPlanned: boolean): void {
    if (!isPlanned) this.#restarts += 1;
    this.#counts.onGone(child);
    this.#inspections.onGone(child);
    const { pid } = child;
    if (pid === undefined) return;
    // Its last messages may still be in the channel.
    const retire = (): void => this.#add(async () => this.#totals.retire(pid));
    if (child.connected) child.once('disconnect', retire);
    else retire();
  }

  /** Reads the limits in use. */
  async #limits(): Promise<readonly LimitInUse[]> {
    const used = await inSlices(usedSteps(await this.#inspect()));
    return inSlices(inUseSteps(await this.#gateway.limits(used.keys()), used));
  }

  #createSources(): AdminSources {
    const gateway = this.#gateway;
    const { reloader } = gateway;
    return {
      notReady: () => this.#notReady(),
      status: async () => this.#status(),
      metrics: () => this.#metrics(),
      reload: () => reloader.reload(),
      config: {
        path: gateway.configPath,
        generation: () => reloader.generation,
        running: () => reloader.running,
        check: () => reloader.check(),
      },
      limits: () => this.#limits(),
      playground: {
        url: gateway.url,
        models: () => reloader.running.models,
        demoKey: () => (reloader.running.demo ? demoKeys.default : null),
      },
      keys: gateway.keys.desk,
      store: gateway.store,
      openApi: () => openApiOf(gateway),
      live: this.#stream,
    };
  }

  #notReady(): string | null {
    if (this.#gateway.isStopping()) return 'the gateway is draining';
    return this.#gateway.serving().length === 0 ? 'no worker serves yet' : null;
  }

  async #counted(): Promise<CollectedMetrics> {
    await this.#counts.begin((id) => this.#gateway.tellAll({ type: 'collect', id }), answerMs);
    return inSlices(this.#totals.mergedSteps());
  }

  async #inspect(): Promise<readonly Inspection[]> {
    const ask = (id: number) => this.#gateway.tellAll({ type: 'inspect', id });
    return (await this.#inspections.begin(ask, answerMs)).answers;
  }

  async #sample(): Promise<void> {
    const merged = await this.#counted();
    if (this.#timer === null) return;
    const point = this.#history.add(merged, Date.now());
    if (point !== null) this.#stream.point(point);
  }

  #view(): GatewayView {
    const gateway = this.#gateway;
    return {
      version: gateway.version,
      node: process.version,
      url: gateway.url,
      demo: gateway.reloader.running.demo,
      startedAt: this.#startedAt,
      notReady: this.#notReady(),
      workers: { wanted: gateway.workers(), serving: gateway.serving().length, restarts: this.#restarts },
      configGeneration: gateway.reloader.generation,
    };
  }

  #status(): object {
    const gateway = this.#gateway;
    return {
      version: gateway.version,
      node: process.version,
      url: gateway.url,
      startedAt: new Date(this.#startedAt).toISOString(),
      ready: this.#notReady() === null,
      workers: { wanted: gateway.workers(), serving: gateway.serving(), restarts: this.#restarts },
      config: { generation: gateway.reloader.generation, ...countsOf(gateway.reloader.running) },
      managedKeys: gateway.keys.count(),
    };
  }

  async #metrics(): Promise<AsyncIterable<string>> {
    const gateway = this.#gateway;
    const { reloader } = gateway;
    // A store that cannot be reached does not keep the other metrics back for longer than its own time limit.
    const size = gateway.store.size().catch(() => null);
    const [merged, bytes] = await Promise.all([this.#counted(), size]);
    const ofStore: PrimaryGauge[] = bytes === null ? [] : [primaryGauge('gateway_store_bytes', bytes)];
    const ofReload = primaryGauge('gateway_config_last_reload_successful', reloader.hasFailed ? 0 : 1);
    const texts = expositionTexts(merged, {
      version: gateway.version,
      node: process.version,
      workers: gateway.serving().length,
      workerRestarts: this.#restarts,
      configGeneration: reloader.generation,
      startedAt: this.#startedAt,
      gauges: [ofReload, ...gateway.gauges(), ...ofStore],
      faults: [...this.#faults],
    });
    return textInSlices(texts);
  }
}

/** Adds up what workers use of each limit, by name. */
function* usedSteps(inspections: readonly Inspection[]): Steps<ReadonlyMap<string, number>> {
  const used = new Map<string, number>();
  for (const { limits } of inspections) {
    for (const each of limits) {
      used.set(each.name, (used.get(each.name) ?? 0) + each.used);
      yield;
    }
  }
  return used;
}

function* inUseSteps(
  all: readonly OwnedUnits[],
  used: ReadonlyMap<string, number>,
): Steps<readonly LimitInUse[]> {
  const inUse: LimitInUse[] = [];
  for (const units of all) {
    inUse.push({ ...units, used: (used.get(units.name) ?? 0) + units.inWindow });
    yield;
  }
  return inUse;
}

async function openApiOf({ version, url, reloader }: OperatedGateway): Promise<object> {
  // Imported here because the schemas of all bodies would delay the start.
  const { createOpenApi } = await import('../openapi/document.js');
  const { listen, vendors } = reloader.running;
  return createOpenApi({ version, publicUrl: listen.publicUrl ?? url, words: vendors });
}

function countsOf(config: ResolvedConfig) {
  return {
    upstreams: config.upstreams.length,
    models: config.models.length,
    groups: config.groups.length,
    keys: config.keys.length,
  };
}

/** The URL and token with which operators sign in. */
export interface AdminAccess {
  readonly url: string;
  readonly token: string;
}

/**
 * Opens the operators' listener: the config's, or for the demo one on the port after the gateway's, with a random
 * token.
 * @throws PortInUseError if another process listens on the config's address
 * @throws Error that says in plain words why the address is otherwise not available
 */
export async function openAdmin(
  config: ResolvedConfig,
  port: number,
  operations: Pick<Operations, 'sources' | 'start' | 'stop' | 'reportFault'>,
  log: Logger,
): Promise<(AdminListener & { readonly access: AdminAccess }) | null> {
  const settings = config.demo ? demoSettings(config.listen.host, port) : config.admin;
  if (settings === null) return null;
  if (settings.port === port && isOneAddress(settings.host, config.listen.host))
    throw new Error(`admin.port is ${port}, where the gateway itself listens; name another`);
  const routes = adminRoutes(operations.sources);
  // The demo's settings are in no config.
  const tokens = () => operations.sources.config.running().admin ?? settings;
  const start = (at: AdminSettings): Promise<AdminListener> =>
    startAdmin(at, tokens, routes, log, (where, fault) => operations.reportFault(where, fault));
  const listener = await start(settings).catch((error: SocketError) => {
    if (config.demo) return start({ ...settings, port: 0 });
    throw portError(error, settings.host, settings.port, 'name another admin.port');
  });
  const { host, token } = settings;
  const url = `http://${formatAuthority(host, listener.port)}`;
  log.info({ url }, 'admin listener ready');
  operations.start();
  return {
    port: listener.port,
    close() {
      operations.stop();
      listener.close();
    },
    access: { url, token },
  };
}

/** Retry interval for an address that the previous gateway is about to free. */
const retryMs = 50;
const patienceMs = 10_000;

/**
 * Opens a listener as soon as its address is free, however long that takes. The gateway serves meanwhile.
 * @returns null if it is no longer wanted before that
 * @throws Error if it cannot be opened for another reason than a `PortInUseError`
 */
export async function untilFree<Opened>(
  open: () => Promise<Opened>,
  isWanted: () => boolean,
  log: Logger,
): Promise<Opened | null> {
  const startedAt = performance.now();
  let hasWarned = false;
  while (isWanted()) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof PortInUseError)) throw error;
    }
    if (!hasWarned && performance.now() - startedAt > patienceMs) {
      hasWarned = true;
      log.warn("the operators' address is still in use, it is tried again and again");
    }
    await sleep(retryMs);
  }
  return null;
}

function demoSettings(host: string, port: number): AdminSettings {
  const token = randomBytes(18).toString('base64url');
  return { host, port: port < 65_535 ? port + 1 : 0, token, readToken: null, metricsToken: null };
}
