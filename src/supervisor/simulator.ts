import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { type KeptProcess, keepRunning, unrefProcess } from './keep.js';
import { isMessage, type SimulatorReport } from './messages.js';

const module = fileURLToPath(new URL('../simulator/main.js', import.meta.url));

/** Longest wait for the simulator to exit. */
const endMs = 1000;

export interface SimulatorProcess {
  /**
   * Starts the simulator unless it runs.
   * @returns its URL, once it listens
   * @throws Error if it does not start
   */
  ensure(): Promise<string>;
  /** Ends it and waits until it has exited. */
  stop(): Promise<void>;
  kill(): void;
  /** Lets it continue without this process, as long as workers that still serve use it. */
  orphan(): void;
}

/**
 * Creates the built-in upstream: a separate process on a loopback port, which it picks once and keeps over restarts.
 */
export function createSimulatorProcess(log: Logger): SimulatorProcess {
  let kept: KeptProcess | null = null;
  let listening: Promise<string> | null = null;
  let port = 0;
  let onStopped: (() => void) | null = null;

  const start = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const place = keepRunning({
        role: 'simulator',
        module,
        environment: () => ({ ...process.env, SIMULATOR_PORT: String(port) }),
        onMessage(child, message) {
          if (!isMessage<SimulatorReport>(message) || message.type !== 'listening') return;
          port = message.port;
          place.markServing(child);
          resolve(`http://127.0.0.1:${port}`);
        },
        onExit: () => onStopped?.(),
        onGivenUp(reason) {
          kept = null;
          listening = null;
          reject(new Error(reason));
        },
        onFault: (where, fault) => log.error({ where, err: fault }, 'internal error'),
        log,
      });
      kept = place;
    });

  const running = (): readonly ChildProcess[] => kept?.running() ?? [];
  const kill = (): void => {
    kept?.release();
    for (const child of running()) child.kill('SIGKILL');
  };

  return {
    ensure() {
      listening ??= start();
      return listening;
    },
    async stop() {
      kept?.release();
      if (running().length === 0) return;
      const ended = new Promise<void>((resolve) => {
        onStopped = resolve;
      });
      for (const child of running()) child.kill('SIGTERM');
      const timer = setTimeout(kill, endMs);
      await ended;
      clearTimeout(timer);
    },
    kill,
    orphan() {
      kept?.release();
      for (const child of running()) unrefProcess(child);
    },
  };
}
