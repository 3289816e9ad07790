import { availableParallelism, constants } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { ResolvedConfig } from '../config/resolve.js';
import { needsSimulator } from '../config/snapshot.js';
import { isHolderMessage } from '../limits/messages.js';
import type { Log } from '../log.js';
import { createStore } from '../store/create.js';
import { createLeases } from './leases.js';
import { createManagedKeys } from './managed-keys.js';
import type { GatewayReport } from './messages.js';
import { type AdminAccess, createOperations, openAdmin, untilFree } from './operate.js';
import { claimPort, formatAddress } from './port.js';
import { createReloader } from './reload.js';
import { createSimulatorProcess } from './simulator.js';
import { replacedSignal, takePort } from './take-over.js';
import { createWorkerPool } from './workers.js';

export interface SuperviseOptions {
  readonly config: ResolvedConfig;
  /** Where that was read, an absolute path; null for the demo. */
  readonly configPath: string | null;
  /** A gateway that serves on the port already is to be replaced. */
  readonly takeOver: boolean;
  /** Of the gateway. */
  readonly version: string;
  /**
   * Reads the config again.
   * @throws ConfigError when it cannot be used
   */
  reload(): ResolvedConfig | Promise<ResolvedConfig>;
  readonly log: Log;
  /** Every worker listens, for the first time. */
  onListening(url: string, admin: AdminAccess | null): void;
}

/**
 * One press of Ctrl-C may come twice: from the terminal, which signals the whole group, and from `npm`, which hands
 * it on. Only what comes later is a second wish.
 */
const samePressMs = 500;

/**
 * Runs the gateway from its start to its end: the simulator where it is needed, the workers, reload on SIGHUP, drain
 * on SIGTERM and SIGINT, or once another gateway has taken its place.
 * @returns the exit code of the process, when everything that was started has ended
 * @throws Error when a port cannot be had
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const { logger } = options.log;
  const { host, tls } = options.config.listen;
  const wanted = options.config.listen.port;
  const { port, predecessor } = options.takeOver
    ? await takePort(host, wanted)
    : { port: await claimPort(host, wanted), predecessor: null };
  const url = `${tls === null ? 'http' : 'https'}://${formatAddress(host, port)}`;

  return new Promise((finish) => {
    let announced = false;
    let succeeded = false;
    /** The operators' listener is open, where there is to be one. */
    let isOpen = false;
    /** `isReplaced`: another gateway has the port, and nobody has asked this one to end yet. */
    let stopping: { readonly at: number; readonly isReplaced: boolean } | null = null;
    let serving: readonly number[] = [];
    let admin: Awaited<ReturnType<typeof openAdmin>> = null;

    const abandon = (reason: string): void => {
      logger.fatal({ reason }, 'the gateway cannot start');
      end(1);
    };
    const end = (code: number): void => {
      admin?.close();
      leases.stop();
      pool.kill();
      simulator.kill();
      keys.stop();
      for (const [signal, listener] of listeners) process.removeListener(signal, listener);
      store
        .close()
        .catch((error: unknown) => logger.error({ err: error }, 'the store did not close'))
        .finally(() => finish(code));
    };

    const onChange = (now: readonly number[]): void => {
      serving = now;
      const report: GatewayReport = { type: 'listening', url, port, workers: serving };
      process.send?.(report, undefined, undefined, () => {});
      succeed();
      announce();
    };
    /** Once every worker serves, the gateway before this one may go. */
    const succeed = (): void => {
      if (predecessor === null || succeeded || serving.length < workerCount(reloader.running)) return;
      succeeded = true;
      const isTold = predecessor.dismiss();
      logger.info({ predecessor: predecessor.pid, isTold }, 'the gateway on this port is replaced');
    };
    const announce = (): void => {
      if (announced || !isOpen || serving.length < workerCount(reloader.running)) return;
      announced = true;
      logger.info({ url, port, workers: serving }, 'listening');
      options.onListening(url, admin?.access ?? null);
    };

    const simulator = createSimulatorProcess(logger);
    const store = createStore(options.config.store);
    const leases = createLeases({ config: options.config, store, log: logger });
    const pool = createWorkerPool({
      count: workerCount(options.config),
      host,
      port,
      headerBytes: options.config.limits.headerBytes,
      log: logger,
      onChange,
      onStart: (child) => keys.greet(child),
      onGone: (child, isPlanned) => {
        leases.onGone(child);
        keys.onGone(child);
        operations.onGone(child, isPlanned);
      },
      onNews: (child, news) => {
        if (isHolderMessage(news)) leases.onMessage(child, news);
        else if (news.type === 'keys-applied') keys.onApplied(child, news.number);
        else if (news.type === 'inspected') operations.onInspected(child, news);
        else operations.onCollected(child, news);
      },
      onGivenUp: abandon,
    });

    const apply = async (config: ResolvedConfig): Promise<string | null> => {
      const [simulatorUrl] = await Promise.all([
        needsSimulator(config) ? simulator.ensure() : null,
        // Whoever has a key of the store is not refused because the gateway has just started.
        keys.looked(),
        leases.ready,
      ]);
      if (stopping !== null) return null;
      leases.apply(config);
      return pool.apply(config, simulatorUrl, workerCount(config));
    };

    const reloader = createReloader({ config: options.config, read: options.reload, apply, log: logger });
    const reload = async (): Promise<void> => {
      if (stopping === null) await reloader.reload();
    };
    const keys = createManagedKeys({
      store,
      config: () => reloader.running,
      tellAll: (order) => pool.tellAll(order),
      onChange: (change) => leases.applyKeys(change),
      log: logger,
    });
    const operations = createOperations({
      version: options.version,
      url,
      workers: () => workerCount(reloader.running),
      configPath: options.configPath,
      reloader,
      store,
      keys,
      serving: () => serving,
      isStopping: () => stopping !== null,
      limits: () => leases.inspect(),
      gauges: () => leases.gauges(),
      tellAll: (order) => pool.tellAll(order),
      log: logger,
    });
    const open = async (): Promise<void> => {
      const openOnce = () => openAdmin(options.config, port, operations, logger);
      admin = await (options.takeOver ? untilFree(openOnce, () => stopping === null, logger) : openOnce());
      isOpen = true;
      announce();
    };

    const stop = async (signal: 'SIGTERM' | 'SIGINT'): Promise<void> => {
      const before = stopping;
      if (before !== null && !before.isReplaced) {
        if (signal === 'SIGINT' && performance.now() - before.at < samePressMs) return;
        logger.warn({ signal }, 'second signal, requests are cut');
        end(128 + constants.signals[signal]);
        return;
      }
      stopping = { at: performance.now(), isReplaced: false };
      if (before !== null) {
        pool.hasten();
        return;
      }
      const { drainMs, unreadyMs } = reloader.running.timeouts;
      logger.info({ signal, limitMs: drainMs }, 'draining');
      // A second signal does not wait for it.
      if (unreadyMs > 0) await setTimeout(unreadyMs, undefined, { ref: false });
      await finishCalls(false);
    };
    const finishCalls = async (isReplaced: boolean): Promise<void> => {
      await pool.drain(reloader.running.timeouts.drainMs, isReplaced);
      await leases.leave();
      await simulator.stop();
      logger.info('stopped');
      end(0);
    };
    const leave = (): void => {
      if (stopping !== null) return;
      stopping = { at: performance.now(), isReplaced: true };
      admin?.close();
      logger.info({ limitMs: reloader.running.timeouts.drainMs }, 'replaced by another gateway, draining');
      void finishCalls(true);
    };

    const listeners: [NodeJS.Signals, () => void][] = [
      ['SIGTERM', () => void stop('SIGTERM')],
      ['SIGINT', () => void stop('SIGINT')],
      ['SIGHUP', () => void reload()],
      [replacedSignal, leave],
    ];
    for (const [signal, listener] of listeners) process.on(signal, listener);
    Promise.all([apply(options.config), open()]).catch((error: unknown) =>
      abandon(error instanceof Error ? error.message : String(error)),
    );
  });
}

function workerCount({ workers }: ResolvedConfig): number {
  return workers === 0 ? availableParallelism() : workers;
}
