import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Reply, Step } from './reply.js';

/** So long may what was sent lie unread in the kernel of the other end. */
const longestUnreadMs = 50;

/** A request being answered. */
interface Exchange {
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Connections whose next request is to be reset. */
  readonly spoiled: WeakSet<Socket>;
  /** The connection is gone. */
  closed: boolean;
  /** The simulator itself brought the answer to its end, good or bad. */
  ended: boolean;
  /** Ends the present wait if that is what it waits for. */
  wake: ((what: 'drain' | 'close') => void) | null;
}

/** Ties an exchange to its response: from here on `closed` is true once the client has left. */
export function openExchange(response: ServerResponse, socket: Socket, spoiled: WeakSet<Socket>): Exchange {
  const exchange: Exchange = { response, socket, spoiled, closed: false, ended: false, wake: null };
  response.on('drain', () => exchange.wake?.('drain'));
  response.on('close', () => {
    exchange.closed = true;
    exchange.wake?.('close');
  });
  return exchange;
}

/**
 * Sends an answer at the pace of the token rate and of its reader, and stops when the client leaves.
 * @param settings what counts where the reply has no wish of its own.
 */
export async function send(
  exchange: Exchange,
  reply: Reply,
  settings: { readonly latencyMs: number; readonly tokensPerSecond: number },
): Promise<void> {
  const { response } = exchange;
  const latencyMs = reply.latencyMs ?? settings.latencyMs;
  const rate = reply.tokensPerSecond ?? settings.tokensPerSecond;
  if (latencyMs > 0) {
    await wait(exchange, latencyMs);
  }
  for (const step of reply.before) {
    await take(exchange, step);
  }
  if (exchange.closed || exchange.ended) {
    return;
  }
  writeHead(response, reply);
  const started = performance.now();
  let tokens = 0;
  for await (const step of reply.steps) {
    if (step.kind === 'data' && step.tokens > 0 && rate > 0) {
      tokens += step.tokens;
      const early = started + (tokens * 1000) / rate - performance.now();
      if (early >= 1) {
        await wait(exchange, early);
      }
    }
    if (exchange.closed || exchange.ended) {
      return;
    }
    await take(exchange, step);
  }
  if (exchange.closed || exchange.ended) {
    return;
  }
  response.end();
  for (const step of reply.after) {
    await take(exchange, step);
  }
}

function writeHead(response: ServerResponse, reply: Reply): void {
  if (!reply.framed) {
    // Node then neither chunks the body nor keeps the connection.
    response.removeHeader('transfer-encoding');
  }
  const length = reply.length === null ? {} : { 'content-length': String(reply.length) };
  response.writeHead(reply.status, { ...reply.headers, ...length });
  if (reply.stream) {
    response.flushHeaders();
  }
}

async function take(exchange: Exchange, step: Step): Promise<void> {
  const { response, socket } = exchange;
  if (exchange.closed || exchange.ended) {
    return;
  }
  if (step.kind === 'data') {
    if (!response.write(step.bytes)) {
      await wait(exchange, 'drain');
    }
    return;
  }
  if (response.headersSent) {
    response.flushHeaders();
  }
  switch (step.kind) {
    case 'wait':
      return wait(exchange, step.ms);
    case 'hang':
      return wait(exchange, 'close');
    case 'raw':
      socket.write(step.bytes, 'latin1');
      return;
    case 'spoil':
      exchange.spoiled.add(socket);
      return;
    case 'disconnect':
      exchange.ended = true;
      socket.destroySoon();
      return;
    case 'reset':
      exchange.ended = true;
      reset(response, socket);
      return;
  }
}

/** Resets a connection: that overtakes what waits here, and what its other end has not read, so both go first. */
function reset(response: ServerResponse, socket: Socket): void {
  socket.write('', () => {
    if (response.headersSent) {
      setTimeout(() => socket.resetAndDestroy(), longestUnreadMs);
    } else {
      socket.resetAndDestroy();
    }
  });
}

/** Waits for so many milliseconds (0: one turn of the event loop), for a drain or for the close, which ends every wait. */
function wait(exchange: Exchange, until: number | 'drain' | 'close'): Promise<void> {
  if (exchange.closed) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const done = (): void => {
      exchange.wake = null;
      clearTimeout(timer);
      clearImmediate(turn);
      resolve();
    };
    const timer = typeof until === 'number' && until > 0 ? setTimeout(done, until) : undefined;
    const turn = until === 0 ? setImmediate(done) : undefined;
    exchange.wake = (what) => {
      if (what === 'close' || until === 'drain') {
        done();
      }
    };
  });
}
