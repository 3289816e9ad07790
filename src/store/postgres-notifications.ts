import type { Client } from 'pg';
import type { PostgresStoreSettings } from '../config/types.js';
import { backOffBefore } from './back-off.js';
import { clientConfig } from './postgres-link.js';
import type { ChangeFeed } from './whole-store.js';

/** A connection that is dead is noticed by a question without an answer. */
const probeEveryMs = 10_000;

/**
 * Listens to what the server tells of changes, over a connection of its own that is made anew when it ends. There is
 * none before somebody listens.
 */
export function createPostgresChanges(settings: PostgresStoreSettings): ChangeFeed {
  const listeners = new Set<(collection: string | null) => void>();
  let client: Client | null = null;
  let isClosed = false;
  let isRunning = false;
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;
  /** As many as there were failures, by which the place is known where it connects to. */
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
      // What was told before nobody heard.
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
