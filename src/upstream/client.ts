/** The gateway's own HTTP/1.1 client: one pool of kept connections per origin. */
import { performance } from 'node:perf_hooks';
import { readBufferBytes } from './connection.js';
import { createDialer } from './dialer.js';
import { ConnectionExchange } from './exchange.js';
import type { Origin } from './origin.js';
import { Pool, type PoolContext } from './pool.js';
import { TimerWheel } from './timers.js';
import type { Deadlines, UpstreamClient, UpstreamHandler, UpstreamRequest } from './types.js';
import { createRequestWriter } from './write.js';

export type {
  Deadlines,
  RequestBodySink,
  RequestBodySource,
  ResponseHead,
  UpstreamClient,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamFailureReason,
  UpstreamHandler,
  UpstreamRequest,
} from './types.js';

/**
 * Makes a client. No callback of a handler or a source is called before `send` has returned. What goes wrong comes
 * through `onFailure`, and what a handler or a source throws through `onFault`, after the connection in use has been
 * destroyed (for `onEnd`, given back).
 */
export function createUpstreamClient(dialer = createDialer()): UpstreamClient {
  const pools = new Map<string, Pool>();
  let closed = false;
  const context: PoolContext = {
    wheel: new TimerWheel(),
    dialer,
    readBuffer: Buffer.allocUnsafeSlow(readBufferBytes),
    writer: createRequestWriter(),
    onEmpty: (pool) => {
      if (pools.get(pool.origin.identity) === pool) pools.delete(pool.origin.identity);
    },
  };

  function poolOf(origin: Origin): Pool {
    const known = pools.get(origin.identity);
    const pool = known ?? new Pool(origin, context);
    if (known === undefined && !closed) pools.set(origin.identity, pool);
    pool.origin = origin;
    return pool;
  }

  function send(
    origin: Origin,
    request: UpstreamRequest,
    deadlines: Deadlines,
    handler: UpstreamHandler,
  ): ConnectionExchange {
    const pool = poolOf(origin);
    const now = performance.now();
    const exchange = new ConnectionExchange(pool, request, deadlines, handler, now);
    if (closed) exchange.failLater('closed', 'the client is closed');
    else pool.send(exchange, now);
    return exchange;
  }

  function stats() {
    let open = 0;
    let idle = 0;
    let waiting = 0;
    for (const pool of pools.values()) {
      open += pool.open;
      idle += pool.idle;
      waiting += pool.waiting;
    }
    return { open, idle, busy: open - idle, waiting };
  }

  function close(): void {
    closed = true;
    for (const pool of pools.values()) pool.close();
  }

  return { send, stats, close };
}
