import { constants } from 'node:os';
import { ConfigError, formatProblem } from '../config/problem.js';
import type { ResolvedConfig } from '../config/resolve.js';
import { needsSimulator } from '../config/snapshot.js';
import type { Log } from '../log.js';
import type { GatewayReport } from './messages.js';
import { claimPort, formatAddress } from './port.js';
import { createSimulatorProcess } from './simulator.js';
import { createWorkerPool } from './workers.js';

export interface SuperviseOptions {
  readonly config: ResolvedConfig;
  /**
   * Reads the config again.
   * @throws ConfigError when it cannot be used
   */
  reload(): ResolvedConfig | Promise<ResolvedConfig>;
  /** At least 1. */
  readonly workers: number;
  readonly log: Log;
  /** Every worker listens, for the first time. */
  onListening(url: string): void;
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
 * @throws Error when the port cannot be had
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const { logger } = options.log;
  const { host, tls } = options.config.listen;
  const port = await claimPort(host, options.config.listen.port);
  const url = `${tls === null ? 'http' : 'https'}://${formatAddress(host, port)}`;

  return new Promise((finish) => {
    let running = options.config;
    let announced = false;
    let stopping: { readonly at: number } | null = null;
    let reloading = false;
    let reloadAgain = false;

    const abandon = (reason: string): void => {
      logger.fatal({ reason }, 'the gateway cannot start');
      end(1);
    };
    const end = (code: number): void => {
      pool.kill();
      simulator.kill();
      for (const [signal, listener] of listeners) process.removeListener(signal, listener);
      finish(code);
    };

    const onChange = (serving: readonly number[]): void => {
      const report: GatewayReport = { type: 'listening', url, port, workers: serving };
      process.send?.(report, undefined, undefined, () => {});
      if (announced || serving.length < options.workers) return;
      announced = true;
      logger.info({ url, port, workers: serving }, 'listening');
      options.onListening(url);
    };

    const simulator = createSimulatorProcess(logger);
    const pool = createWorkerPool({
      count: options.workers,
      host,
      port,
      headerBytes: options.config.limits.headerBytes,
      log: logger,
      onChange,
      onGivenUp: abandon,
    });

    const apply = async (config: ResolvedConfig): Promise<void> => {
      if (config.unenforced.length > 0)
        logger.warn({ settings: config.unenforced }, 'these settings are not enforced yet');
      const simulatorUrl = needsSimulator(config) ? await simulator.ensure() : null;
      if (stopping === null) pool.apply(config, simulatorUrl);
    };

    const reload = async (): Promise<void> => {
      reloadAgain = reloading;
      if (reloading || stopping !== null) return;
      reloading = true;
      try {
        const read = await options.reload();
        const next = keepFromBefore(read, running);
        const fixed = needRestart(running, read);
        await apply(next);
        running = next;
        if (fixed.length > 0) logger.warn({ settings: fixed }, 'these settings change only with a restart');
      } catch (error) {
        const reasons = error instanceof ConfigError ? error.problems.map(formatProblem) : [String(error)];
        logger.error({ reasons }, 'reload refused, the running config stays');
      }
      reloading = false;
      if (reloadAgain) await reload();
    };

    const stop = async (signal: 'SIGTERM' | 'SIGINT'): Promise<void> => {
      if (stopping !== null) {
        if (signal === 'SIGINT' && performance.now() - stopping.at < samePressMs) return;
        logger.warn({ signal }, 'second signal, requests are cut');
        end(128 + constants.signals[signal]);
        return;
      }
      stopping = { at: performance.now() };
      logger.info({ signal, limitMs: running.timeouts.drainMs }, 'draining');
      await pool.drain(running.timeouts.drainMs);
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
    apply(running).catch((error: unknown) => abandon(error instanceof Error ? error.message : String(error)));
  });
}

/**
 * A model that was known before the reload keeps its date, and a secret that was made up stays. So does the store: a
 * worker that starts later must not look for its records elsewhere than the others.
 */
function keepFromBefore(next: ResolvedConfig, running: ResolvedConfig): ResolvedConfig {
  const created = new Map(running.models.map((model) => [model.name, model.created]));
  return {
    ...next,
    secret: next.secret.given ? next.secret : running.secret,
    store: running.store,
    models: next.models.map((model) => ({ ...model, created: created.get(model.name) ?? model.created })),
  };
}

/** Settings that differ and that a running gateway cannot change. */
function needRestart(running: ResolvedConfig, next: ResolvedConfig): string[] {
  const read = (config: ResolvedConfig): [string, string][] => [
    ['listen', JSON.stringify({ ...config.listen, publicUrl: null })],
    ['workers', String(config.workers)],
    ['limits.headerBytes', String(config.limits.headerBytes)],
    ['store', JSON.stringify(config.store)],
  ];
  const before = new Map(read(running));
  return read(next).flatMap(([name, value]) => (before.get(name) === value ? [] : [name]));
}
