import { type ClientConnection, openConnection } from '../support/load/connection.js';
import { isWhole, type LoadFailure } from '../support/load/load.js';
import { clock } from '../support/load/upstream.js';

/** Milliseconds between two checks of which requests are due. */
const tickMs = 5;
/** A connection that has been idle as long as answers allow (`keep-alive: timeout=7`) may be closed at any moment. */
const mostIdleMs = 7000;

interface OpenLoadOptions {
  readonly port: number;
  readonly requestsPerSecond: number;
  readonly request: Buffer;
  /** Most connections. Requests that are due while all of them are busy wait, and the wait counts. */
  readonly mostConnections: number;
}

export interface OpenLoadFailure extends LoadFailure {
  /** Milliseconds from sending the request; 0 if it was not sent. */
  readonly askedMs: number;
}

/** Clients with a fixed rate of requests, however slow the answers are. */
interface OpenLoad {
  /** Requests that were due so far. */
  readonly due: number;
  readonly answers: number;
  readonly failures: readonly OpenLoadFailure[];
  /** Milliseconds of each whole answer, from the time at which its request was due. */
  readonly latenciesMs: readonly number[];
  /** Sends no more requests. Resolves when every request has ended. */
  stop(): Promise<void>;
}

/** Starts the clients. All requests are the same, and each answer must be whole with status 200. */
export function startOpenLoad(options: OpenLoadOptions): OpenLoad {
  const failures: OpenLoadFailure[] = [];
  const latenciesMs: number[] = [];
  const idle: { readonly connection: ClientConnection; readonly since: number }[] = [];
  /** Due times of the requests that wait for a connection. */
  const waiting: number[] = [];
  const startedAt = clock();
  let connections = 0;
  let due = 0;
  let answers = 0;
  let underWay = 0;
  let onQuiet: (() => void) | null = null;

  const fail = (error: unknown, askedAt = clock()): void => {
    const reason = error instanceof Error ? error.message : String(error);
    const at = clock();
    failures.push({ at, reason, worker: null, askedMs: at - askedAt });
  };

  const end = (): void => {
    underWay -= 1;
    if (underWay === 0) onQuiet?.();
  };

  const ask = async (connection: ClientConnection, dueAt: number): Promise<void> => {
    const askedAt = clock();
    try {
      const answer = await connection.ask(options.request);
      answers += 1;
      if (isWhole(answer)) latenciesMs.push(clock() - dueAt);
      else fail(`status ${answer.status} ${answer.text.slice(0, 200)}`, askedAt);
    } catch (error) {
      fail(error, askedAt);
    }
    end();
  };

  /** Opens a connection, and sends on it what waits at that time. */
  const serveAnew = async (first: number): Promise<void> => {
    connections += 1;
    try {
      const connection = await openConnection(options.port);
      await serve(connection, first);
    } catch (error) {
      connections -= 1;
      fail(error);
      end();
    }
  };

  const serve = async (connection: ClientConnection, first: number): Promise<void> => {
    let dueAt: number | undefined = first;
    while (dueAt !== undefined && connection.usable) {
      await ask(connection, dueAt);
      dueAt = waiting.shift();
    }
    if (connection.usable) {
      idle.push({ connection, since: clock() });
      return;
    }
    connections -= 1;
    if (dueAt !== undefined) void serveAnew(dueAt);
  };

  const send = (dueAt: number): void => {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      const { connection, since } = last;
      if (connection.usable && clock() - since < mostIdleMs) {
        void serve(connection, dueAt);
        return;
      }
      connection.close();
      connections -= 1;
    }
    if (connections < options.mostConnections) void serveAnew(dueAt);
    else waiting.push(dueAt);
  };

  const look = (): void => {
    const now = clock();
    const wanted = Math.floor(((now - startedAt) * options.requestsPerSecond) / 1000);
    while (due < wanted) {
      due += 1;
      underWay += 1;
      send(startedAt + (due * 1000) / options.requestsPerSecond);
    }
  };
  const timer = setInterval(look, tickMs);

  return {
    get due() {
      return due;
    },
    get answers() {
      return answers;
    },
    failures,
    latenciesMs,
    async stop() {
      clearInterval(timer);
      if (underWay > 0)
        await new Promise<void>((resolve) => {
          onQuiet = resolve;
        });
      for (const { connection } of idle) connection.close();
    },
  };
}
