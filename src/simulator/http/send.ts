import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Pace, pacing } from './pace.js';
import type { Reply, Step } from './reply.js';

/** How long sent bytes may stay unread in the kernel of the other end. */
const longestUnreadMs = 50;

/** A request being answered. */
interface OpenReply {
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Connections whose next request will be reset. */
  readonly spoiled: WeakSet<Socket>;
  /** Whether the connection is closed. */
  closed: boolean;
  /** Whether the simulator itself has ended the answer, regularly or not. */
  ended: boolean;
  /** Ends the current wait if it waits for this. */
  wake: ((what: 'drain' | 'close') => void) | null;
}

/** Opens a reply: from now on `closed` becomes true when the client disconnects. */
export function openReply(response: ServerResponse, socket: Socket, spoiled: WeakSet<Socket>): OpenReply {
  const opened: OpenReply = { response, socket, spoiled, closed: false, ended: false, wake: null };
  response.on('drain', () => opened.wake?.('drain'));
  response.on('close', () => {
    opened.closed = true;
    opened.wake?.('close');
  });
  return opened;
}

/**
 * Sends an answer at the pace of the token rate and of its reader, and stops when the client disconnects.
 * @param settings apply if the reply has none of its own.
 */
export async function send(opened: OpenReply, reply: Reply, settings: Pace): Promise<void> {
  const { response } = opened;
  const latencyMs = reply.latencyMs ?? settings.latencyMs;
  if (latencyMs > 0) {
    await wait(opened, latencyMs);
  }
  for (const step of reply.before) {
    await take(opened, step);
  }
  if (opened.closed || opened.ended) {
    return;
  }
  writeHead(response, reply);
  const untilDue = pacing(reply.tokensPerSecond ?? settings.tokensPerSecond);
  for await (const step of reply.steps) {
    const early = step.kind === 'data' ? untilDue(step.tokens) : 0;
    if (early > 0) await wait(opened, early);
    if (opened.closed || opened.ended) {
      return;
    }
    await take(opened, step);
  }
  if (opened.closed || opened.ended) {
    return;
  }
  response.end();
  for (const step of reply.after) {
    await take(opened, step);
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

async function take(opened: OpenReply, step: Step): Promise<void> {
  const { response, socket } = opened;
  if (opened.closed || opened.ended) {
    return;
  }
  if (step.kind === 'data') {
    if (!response.write(step.bytes)) {
      await wait(opened, 'drain');
    }
    return;
  }
  if (response.headersSent) {
    response.flushHeaders();
  }
  switch (step.kind) {
    case 'wait':
      return wait(opened, step.ms);
    case 'hang':
      return wait(opened, 'close');
    case 'raw':
      socket.write(step.bytes, 'latin1');
      return;
    case 'spoil':
      opened.spoiled.add(socket);
      return;
    case 'disconnect':
      opened.ended = true;
      socket.destroySoon();
      return;
    case 'reset':
      opened.ended = true;
      reset(response, socket);
  }
}

/** Resets a connection once waiting bytes were sent and read by the other end, since a reset overtakes both. */
function reset(response: ServerResponse, socket: Socket): void {
  socket.write('', () => {
    if (response.headersSent) {
      setTimeout(() => socket.resetAndDestroy(), longestUnreadMs);
    } else {
      socket.resetAndDestroy();
    }
  });
}

/** Waits for milliseconds (0: one turn of the event loop), for a drain, or for the close, which ends every wait. */
function wait(opened: OpenReply, until: number | 'drain' | 'close'): Promise<void> {
  if (opened.closed) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const done = (): void => {
      opened.wake = null;
      clearTimeout(timer);
      clearImmediate(turn);
      resolve();
    };
    const timer = typeof until === 'number' && until > 0 ? setTimeout(done, until) : undefined;
    const turn = until === 0 ? setImmediate(done) : undefined;
    opened.wake = (what) => {
      if (what === 'close' || until === 'drain') {
        done();
      }
    };
  });
}
