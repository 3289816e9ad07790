import type { RedisStoreSettings } from '../config/types.js';
import { storeClosed, storeUnavailable } from './unavailable.js';

/** Sends one command, of which only one key may be named: the nodes of a cluster do not share a command. */
export type SendRedis = (key: string, command: readonly string[]) => Promise<unknown>;

/** Calls to Redis that always end in time. */
export interface RedisLink {
  /**
   * Does a piece of work with the connection.
   * @throws {GatewayError} of kind `store_unavailable` when it fails, or is not done within the time of the settings
   */
  call<T>(work: (send: SendRedis) => Promise<T>): Promise<T>;
  /** Lets the calls under way end, and then the connection. */
  close(): Promise<void>;
}

/** Calls under way in this process. */
const mostCalls = 4096;
/** Commands without an answer on one connection: a call may have several, and may have given up on them. */
const mostUnanswered = 2 * mostCalls;

/**
 * Holds one connection, which is begun at once and without waiting for it. While there is none, calls are refused at
 * once. When a call gets no answer, another connection is tried, and takes the place of the first if it comes about:
 * the system itself may take a quarter of an hour to notice that a connection is dead.
 */
export function createRedisLink(settings: RedisStoreSettings): RedisLink {
  const { timeoutMs } = settings;
  const calls = new Set<Promise<unknown>>();
  let connection = connectRedis(settings);
  let successor: RedisConnection | null = null;
  /** Connections that were replaced and are about to end. */
  const leaving = new Set<RedisConnection>();
  let closing: Promise<void> | null = null;

  const replace = async (silent: RedisConnection): Promise<void> => {
    if (connection !== silent || successor !== null || closing !== null) return;
    const next = connectRedis(settings);
    successor = next;
    const timer = setTimeout(() => next.destroy(), timeoutMs);
    await next.tried;
    clearTimeout(timer);
    successor = null;
    if (next.failure() !== null || closing !== null) {
      next.destroy();
      return;
    }
    connection = next;
    // The other nodes of a cluster may still answer in time.
    leaving.add(silent);
    const end = setTimeout(() => {
      leaving.delete(silent);
      silent.destroy();
    }, timeoutMs);
    end.unref();
  };

  const work = async <T>(
    used: RedisConnection,
    isOver: () => boolean,
    todo: (send: SendRedis) => Promise<T>,
  ): Promise<T> => {
    await used.tried;
    const failure = used.failure();
    if (failure !== null) throw failure;
    return todo((key, command) => {
      if (isOver()) throw new Error('the time of the call is over');
      if (used.unanswered() >= mostUnanswered) {
        void replace(used);
        throw new Error(`${mostUnanswered} commands have no answer`);
      }
      return used.send(key, command);
    });
  };

  const run = <T>(todo: (send: SendRedis) => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const used = connection;
      let over = false;
      const timer = setTimeout(() => {
        over = true;
        void replace(used);
        reject(storeUnavailable(new Error(`Redis gave no answer within ${timeoutMs} ms`)));
      }, timeoutMs);
      work(used, () => over, todo)
        .then(resolve, (cause: unknown) => {
          if (isOfReplica(cause)) void replace(used);
          reject(storeUnavailable(cause));
        })
        .finally(() => clearTimeout(timer));
    });

  return {
    async call(todo) {
      if (closing !== null) throw storeClosed();
      if (calls.size >= mostCalls) {
        throw storeUnavailable(new Error(`${mostCalls} calls of the store are under way`));
      }
      const call = run(todo);
      calls.add(call);
      try {
        return await call;
      } finally {
        calls.delete(call);
      }
    },
    close() {
      closing ??= Promise.allSettled(calls).then(() => {
        for (const each of [connection, successor, ...leaving]) each?.destroy();
      });
      return closing;
    },
  };
}

/** The server has become a replica, and its name may lead to the new master by now. */
function isOfReplica(cause: unknown): boolean {
  return cause instanceof Error && cause.message.startsWith('READONLY');
}

/** A way to a Redis server or cluster, which restores itself for ever. */
interface RedisConnection {
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
function connectRedis(settings: RedisStoreSettings): RedisConnection {
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

/**
 * An entry of an index outlives what it names by this, so that hosts whose clocks differ do not lose one to another's
 * sweep.
 */
export const clockSkewMs = 600_000;

/** A time to live as Redis takes it. */
export function milliseconds(ttlMs: number): string {
  return `${Math.ceil(Math.max(1, ttlMs))}`;
}

/** The texts of a reply that is a list. */
export function textsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.filter((each): each is string => typeof each === 'string') : [];
}
