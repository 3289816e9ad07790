import type { Client } from 'pg';
import type { PostgresStoreSettings } from '../config/types.js';
import { clientConfig } from './postgres-link.js';
import { backOffBefore, type ChangeFeed } from './store.js';

/** Interval of probes, which detect a dead connection. */
const probeEveryMs = 10_000;

/**
 * Listens for the server's notifications of changes, on a separate connection that is reopened when it ends. The first
 * listener opens it.
 */
export function createPostgresChanges(settings: PostgresStoreSettings): ChangeFeed {
  const listeners = new Set<(collection: string | null) => void>();
  let client: Client | null = null;
  let isClosed = false;
  let isRunning = false;
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;
  /** Number of failures so far, which determines the place to connect to. */
  let tries = 0;

  const tell = (collection: string | null): void => {
    for (const listener of listeners) listener(collection);
  };
  const isWanted = (): boolean => !isClosed && listeners.size > 0;
  const end = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const ending = client;
    client = null;
    ending?.removeAllListeners();
    ending?.on('error', () => {});
    ending?.end().catch(() => undefined);
  };
  const probe = (of: Client): void => {
    timer = setTimeout(() => {
      of.query('SELECT 1').then(
        () => client === of && probe(of),
        () => client === of && fail(),
      );
    }, probeEveryMs);
    timer.unref();
  };
  const fail = (): void => {
    end();
    if (!isWanted()) {
      isRunning = false;
      return;
    }
    timer = setTimeout(() => void connect(), backOffBefore(failures));
    timer.unref();
    failures += 1;
    tries += 1;
  };
  const connect = async (): Promise<void> => {
    isRunning = true;
    try {
      const { default: pg } = await import('pg');
      if (!isWanted()) {
        isRunning = false;
        return;
      }
      const { timeoutMs } = settings;
      const made = new pg.Client({ ...clientConfig(settings, timeoutMs, tries), query_timeout: timeoutMs });
      client = made;
      made.on('error', () => client === made && fail());
      made.on('end', () => client === made && fail());
      made.on('notification', ({ payload }) => tell(payload ?? null));
      await made.connect();
      await made.query(`LISTEN "model_gateway.${settings.schema}"`);
      if (client !== made) return;
      failures = 0;
      // Changes before this moment were missed.
      tell(null);
      probe(made);
    } catch {
      if (client !== null) fail();
    }
  };

  return {
    listen(onChange) {
      listeners.add(onChange);
      if (!isRunning && !isClosed) void connect();
      return () => {
        listeners.delete(onChange);
        if (listeners.size > 0) return;
        end();
        isRunning = false;
      };
    },
    async close() {
      isClosed = true;
      end();
    },
  };
}
