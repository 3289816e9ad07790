import type { RedisStoreSettings } from '../config/types.js';
import { connectRedis, type RedisConnection } from './redis-connection.js';
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
