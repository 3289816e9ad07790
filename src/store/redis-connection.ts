import type { RedisStoreSettings } from '../config/types.js';

/** A way to a Redis server or cluster, which restores itself for ever. */
export interface RedisConnection {
  /** Why commands cannot be sent now; null while they can, or while the first attempt is still under way. */
  failure(): Error | null;
  /** Resolves when the first attempt has come to an end, good or bad. */
  readonly tried: Promise<void>;
  /** @param key the one key of the command, by which a cluster finds the node */
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** Commands that were sent and have no answer, even if nobody waits for it any more. */
  unanswered(): number;
  /** Ends it at once; what is under way rejects. */
  destroy(): void;
}

type RedisPackage = typeof import('redis');

const firstPauseMs = 50;
const longestPauseMs = 2000;

/** The pause before an attempt: longer each time, and not the same for all gateways. */
export function pauseBefore(attempt: number): number {
  const pause = Math.min(firstPauseMs * 2 ** Math.min(attempt, 10), longestPauseMs);
  return Math.round(pause * (0.5 + Math.random() / 2));
}

/**
 * Connects in the background. The package is loaded here, so that nobody pays for it who has no Redis.
 */
export function connectRedis(settings: RedisStoreSettings): RedisConnection {
  let failure: Error | null = null;
  let destroyed = false;
  let unanswered = 0;
  let inner: OpenConnection | null = null;
  let attempted = (): void => {};
  const tried = new Promise<void>((resolve) => {
    attempted = resolve;
  });
  const events: ConnectionEvents = {
    up: () => attempted(),
    down(error) {
      failure = error instanceof Error ? error : new Error(String(error));
      attempted();
    },
  };
  import('redis').then((redis) => {
    if (destroyed) return;
    inner = (settings.cluster ? openCluster : openSingle)(redis, settings, events);
  }, events.down);
  return {
    failure: () => (inner?.isReady() ? null : failure),
    tried,
    async send(key, command) {
      if (inner === null) throw new Error('not connected yet');
      unanswered += 1;
      try {
        return await inner.send(key, command);
      } finally {
        unanswered -= 1;
      }
    },
    unanswered: () => unanswered,
    destroy() {
      if (destroyed) return;
      destroyed = true;
      events.down(new Error('the connection was ended'));
      inner?.destroy();
    },
  };
}

interface OpenConnection extends Pick<RedisConnection, 'send' | 'destroy'> {
  isReady(): boolean;
}

interface ConnectionEvents {
  up(): void;
  down(error: unknown): void;
}

function clientOptions({ username, password, tls, timeoutMs }: RedisStoreSettings) {
  return {
    // Every Redis and Valkey speaks it, and nothing here needs more.
    RESP: 2 as const,
    username: username ?? undefined,
    password: password ?? undefined,
    socket: {
      ...(tls ? { tls: true as const } : {}),
      connectTimeout: timeoutMs,
      reconnectStrategy: pauseBefore,
    },
    // What cannot be sent now is refused: the caller decides whether to ask again.
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
    // It ends only what was not sent yet. The deadline of a call is held by the link.
    commandOptions: { timeout: undefined },
  };
}

function openSingle(
  redis: RedisPackage,
  settings: RedisStoreSettings,
  events: ConnectionEvents,
): OpenConnection {
  const [node] = settings.nodes;
  const options = clientOptions(settings);
  const client = redis.createClient({
    ...options,
    database: settings.database,
    socket: { ...options.socket, ...node },
  });
  client.on('error', events.down);
  client.on('ready', events.up);
  client.connect().catch(events.down);
  return {
    isReady: () => client.isReady,
    send: (_key, command) => client.sendCommand([...command]),
    destroy: () => client.destroy(),
  };
}

function openCluster(
  redis: RedisPackage,
  settings: RedisStoreSettings,
  events: ConnectionEvents,
): OpenConnection {
  let destroyed = false;
  let timer: NodeJS.Timeout | null = null;
  const cluster = redis.createCluster({
    RESP: 2,
    rootNodes: settings.nodes.map((node) => ({ socket: { ...node } })),
    defaults: clientOptions(settings),
    commandOptions: { timeout: undefined },
    // Else one dead node would hold up the first connection to all others.
    minimizeConnections: true,
  });
  // Each node's trouble comes here and in the calls that it concerns; only the latter matter.
  cluster.on('error', () => {});
  const attempt = (count: number): void => {
    timer = null;
    cluster.connect().then(events.up, (error: unknown) => {
      if (destroyed) return;
      events.down(error);
      timer = setTimeout(() => attempt(count + 1), pauseBefore(count));
    });
  };
  attempt(0);
  return {
    isReady: () => cluster.isReady,
    send: (key, command) => cluster.sendCommand(key, false, [...command]),
    destroy() {
      destroyed = true;
      if (timer !== null) clearTimeout(timer);
      cluster.destroy();
    },
  };
}
