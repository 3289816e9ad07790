import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type AdminSources, adminRoutes } from '../admin/endpoints.js';
import type { LimitInUse } from '../admin/limits.js';
import { type AdminListener, startAdmin } from '../admin/listener.js';
import { demoKeys } from '../config/demo.js';
import type { AdminSettings, ResolvedConfig } from '../config/resolve.js';
import { exposition, type PrimaryGauge } from '../metrics/exposition.js';
import type { MetricsSnapshot } from '../metrics/snapshot.js';
import { createTotals } from '../metrics/totals.js';
import { mayHoldAnything } from '../store/create.js';
import type { Ledger, Store } from '../store/store.js';
import { createCollector } from './collect.js';
import { createLive, type Live } from './live.js';
import type { ManagedKeys } from './managed-keys.js';
import type { Collected, Inspected, WorkerOrder } from './messages.js';
import { formatAddress } from './port.js';
import type { Reloader } from './reload.js';

/** What the primary process knows that operators ask for. */
export interface OperatedGateway {
  readonly version: string;
  readonly url: string;
  /** Workers that there should be. */
  workers(): number;
  /** Absolute; null for the demo. */
  readonly configPath: string | null;
  readonly reloader: Reloader;
  /** That of the workers, which the primary opens when it first needs it. */
  readonly store: Store & Ledger;
  readonly keys: Pick<ManagedKeys, 'desk' | 'count'>;
  /** Process ids of the workers that serve at this moment. */
  serving(): readonly number[];
  isStopping(): boolean;
  /** The limits that are in use. */
  limits(): readonly LimitInUse[];
  /** What parts of the primary tell of the moment. */
  gauges(): readonly PrimaryGauge[];
  tellAll(order: WorkerOrder): readonly ChildProcess[];
  readonly log: Logger;
}

/** The operators' side of a gateway. */
export interface Operations {
  onCollected(child: ChildProcess, collected: Collected): void;
  onInspected(child: ChildProcess, inspected: Inspected): void;
  /** @param isPlanned it was to end */
  onGone(child: ChildProcess, isPlanned: boolean): void;
  readonly sources: AdminSources;
  /** What it remembers and tells of itself while there are operators. */
  readonly live: Pick<Live, 'start' | 'stop'>;
}

export function createOperations(gateway: OperatedGateway): Operations {
  const startedAt = Date.now();
  const totals = createTotals();
  let restarts = 0;
  const collector = createCollector<ChildProcess, null>((id) => gateway.tellAll({ type: 'collect', id }));

  const notReady = (): string | null => {
    if (gateway.isStopping()) return 'the gateway is draining';
    return gateway.serving().length === 0 ? 'no worker serves yet' : null;
  };

  /** Null where nothing was ever stored. */
  const usedStore = () => (mayHoldAnything(gateway.reloader.running.store) ? gateway.store : null);

  const counted = async (): Promise<MetricsSnapshot> => {
    await collector.collect();
    return totals.merged();
  };

  const live = createLive({
    counted,
    counts: () => totals.merged(),
    gateway: () => ({
      version: gateway.version,
      node: process.version,
      url: gateway.url,
      demo: gateway.reloader.running.demo,
      startedAt,
      notReady: notReady(),
      workers: { wanted: gateway.workers(), serving: gateway.serving().length, restarts },
      configGeneration: gateway.reloader.generation,
    }),
    tellAll: (order) => gateway.tellAll(order),
    log: gateway.log,
  });

  return {
    onCollected(child, { id, snapshot }) {
      if (child.pid === undefined) return;
      totals.update(child.pid, snapshot);
      collector.onPart(child, id, null);
    },
    onInspected: live.onInspected,
    onGone(child, isPlanned) {
      if (!isPlanned) restarts += 1;
      collector.onGone(child);
      live.onGone(child);
      const { pid } = child;
      if (pid === undefined) return;
      // Its last words may still be on their way.
      if (child.connected) child.once('disconnect', () => totals.retire(pid));
      else totals.retire(pid);
    },
    sources: {
      notReady,
      async status() {
        return {
          version: gateway.version,
          node: process.version,
          url: gateway.url,
          startedAt: new Date(startedAt).toISOString(),
          ready: notReady() === null,
          workers: { wanted: gateway.workers(), serving: gateway.serving(), restarts },
          config: { generation: gateway.reloader.generation, ...countsOf(gateway.reloader.running) },
          managedKeys: gateway.keys.count(),
        };
      },
      async metrics() {
        return exposition(await counted(), {
          version: gateway.version,
          node: process.version,
          workers: gateway.serving().length,
          workerRestarts: restarts,
          configGeneration: gateway.reloader.generation,
          startedAt,
          gauges: gateway.gauges(),
        });
      },
      reload: () => gateway.reloader.reload(),
      config: {
        path: gateway.configPath,
        generation: () => gateway.reloader.generation,
        running: () => gateway.reloader.running,
        check: () => gateway.reloader.check(),
      },
      limits: () => gateway.limits(),
      playground: {
        url: gateway.url,
        models: () => gateway.reloader.running.models,
        demoKey: () => (gateway.reloader.running.demo ? demoKeys.default : null),
      },
      keys: gateway.keys.desk,
      usageLedger: usedStore,
      tasks: usedStore,
      async openApi() {
        // Loaded only here: the schemas of all bodies would hold up the start.
        const { createOpenApi } = await import('../openapi/document.js');
        const { listen, vendors } = gateway.reloader.running;
        return createOpenApi({
          version: gateway.version,
          publicUrl: listen.publicUrl ?? gateway.url,
          words: vendors,
        });
      },
      live: live.stream,
    },
    live,
  };
}

function countsOf(config: ResolvedConfig) {
  return {
    upstreams: config.upstreams.length,
    models: config.models.length,
    groups: config.groups.length,
    keys: config.keys.length,
  };
}

/** Where operators sign in, and with what. */
export interface AdminAccess {
  readonly url: string;
  readonly token: string;
}

/**
 * Opens the operators' listener: that of the config, or, for the demo, one beside the gateway's port with a token made
 * up for this start.
 * @throws Error when the address of the config cannot be had
 */
export async function openAdmin(
  config: ResolvedConfig,
  port: number,
  { sources, live }: Pick<Operations, 'sources' | 'live'>,
  log: Logger,
): Promise<(AdminListener & { readonly access: AdminAccess }) | null> {
  const settings = config.demo ? demoSettings(config.listen.host, port) : config.admin;
  if (settings === null) return null;
  const routes = adminRoutes(sources);
  const listener = await startAdmin(settings, routes, log).catch((error: unknown) => {
    if (!config.demo) throw error;
    return startAdmin({ ...settings, port: 0 }, routes, log);
  });
  const { host, token } = settings;
  const url = `http://${formatAddress(host, listener.port)}`;
  log.info({ url }, 'operators may sign in');
  live.start();
  return {
    port: listener.port,
    close() {
      live.stop();
      listener.close();
    },
    access: { url, token },
  };
}

/** How often an address is tried that the gateway before this one is about to give up. */
const retryMs = 50;
const patienceMs = 10_000;

/**
 * Opens a listener as soon as its address is free, however long that takes: the gateway serves meanwhile.
 * @returns null when it was wanted no more before that
 * @throws Error when it cannot be opened for any other reason
 */
export async function untilFree<Opened>(
  open: () => Promise<Opened>,
  isWanted: () => boolean,
  log: Logger,
): Promise<Opened | null> {
  const startedAt = performance.now();
  let isSaid = false;
  while (isWanted()) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof Error) || Reflect.get(error, 'code') !== 'EADDRINUSE') throw error;
    }
    if (!isSaid && performance.now() - startedAt > patienceMs) {
      isSaid = true;
      log.warn("the operators' address is still in use, it is tried again and again");
    }
    await setTimeout(retryMs);
  }
  return null;
}

function demoSettings(host: string, port: number): AdminSettings {
  return { host, port: port < 65_535 ? port + 1 : 0, token: randomBytes(18).toString('base64url') };
}
