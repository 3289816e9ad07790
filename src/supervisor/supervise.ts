import { constants } from 'node:os';
import type { ResolvedConfig } from '../config/resolve.js';
import { needsSimulator } from '../config/snapshot.js';
import { isHolderMessage } from '../limits/messages.js';
import type { Log } from '../log.js';
import { createStore } from '../store/create.js';
import { createLeases } from './leases.js';
import { createManagedKeys } from './managed-keys.js';
import type { GatewayReport } from './messages.js';
import { type AdminAccess, createOperations, openAdmin } from './operate.js';
import { claimPort, formatAddress } from './port.js';
import { createReloader } from './reload.js';
import { createSimulatorProcess } from './simulator.js';
import { createWorkerPool } from './workers.js';

export interface SuperviseOptions {
  readonly config: ResolvedConfig;
  /** Of the gateway. */
  readonly version: string;
  /**
   * Reads the config again.
   * @throws ConfigError when it cannot be used
   */
  reload(): ResolvedConfig | Promise<ResolvedConfig>;
  /** At least 1. */
  readonly workers: number;
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
 * on SIGTERM and SIGINT.
 * @returns the exit code of the process, when everything that was started has ended
 * @throws Error when a port cannot be had
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const { logger } = options.log;
  const { host, tls } = options.config.listen;
  const port = await claimPort(host, options.config.listen.port);
  const url = `${tls === null ? 'http' : 'https'}://${formatAddress(host, port)}`;

  return new Promise((finish) => {
    let announced = false;
    /** The operators' listener is open, where there is to be one. */
    let isOpen = false;
    let stopping: { readonly at: number } | null = null;
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
      announce();
    };
    const announce = (): void => {
      if (announced || !isOpen || serving.length < options.workers) return;
      announced = true;
      logger.info({ url, port, workers: serving }, 'listening');
      options.onListening(url, admin?.access ?? null);
    };

    const simulator = createSimulatorProcess(logger);
    const store = createStore(options.config.store);
    const leases = createLeases({ config: options.config, store, log: logger });
    const pool = createWorkerPool({
      count: options.workers,
      host,
      port,
      headerBytes: options.config.limits.headerBytes,
      log: logger,
      onChange,
      onStart: (child) => keys.greet(child),
      onGone: (child) => {
        leases.onGone(child);
        keys.onGone(child);
        operations.onGone(child);
      },
      onNews: (child, news) => {
        if (isHolderMessage(news)) leases.onMessage(child, news);
        else if (news.type === 'keys-applied') keys.onApplied(child, news.number);
        else operations.onCollected(child, news);
      },
      onGivenUp: abandon,
    });

    const apply = async (config: ResolvedConfig): Promise<void> => {
      const [simulatorUrl] = await Promise.all([
        needsSimulator(config) ? simulator.ensure() : null,
        // Whoever has a key of the store is not refused because the gateway has just started.
        keys.looked(),
      ]);
      if (stopping !== null) return;
      leases.apply(config);
      await pool.apply(config, simulatorUrl);
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
      workers: options.workers,
      reloader,
      store,
      keys,
      serving: () => serving,
      isStopping: () => stopping !== null,
      tellAll: (order) => pool.tellAll(order),
    });
    const open = async (): Promise<void> => {
      admin = await openAdmin(options.config, port, operations.sources, logger);
      isOpen = true;
      announce();
    };

    const stop = async (signal: 'SIGTERM' | 'SIGINT'): Promise<void> => {
      if (stopping !== null) {
        if (signal === 'SIGINT' && performance.now() - stopping.at < samePressMs) return;
        logger.warn({ signal }, 'second signal, requests are cut');
        end(128 + constants.signals[signal]);
        return;
      }
      stopping = { at: performance.now() };
      logger.info({ signal, limitMs: reloader.running.timeouts.drainMs }, 'draining');
      await pool.drain(reloader.running.timeouts.drainMs);
      await leases.leave();
      await simulator.stop();
      logger.info('stopped');
      end(0);
    };

    const listeners: [NodeJS.Signals, () => void][] = [
      ['SIGTERM', () => void stop('SIGTERM')],
      ['SIGINT', () => void stop('SIGINT')],
      ['SIGHUP', () => void reload()],
    ];
    for (const [signal, listener] of listeners) process.on(signal, listener);
    Promise.all([apply(options.config), open()]).catch((error: unknown) =>
      abandon(error instanceof Error ? error.message : String(error)),
    );
  });
}
