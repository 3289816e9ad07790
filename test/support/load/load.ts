import { setTimeout as pause } from 'node:timers/promises';
import { random } from '../seed.js';
import { type Answer, type ClientConnection, openConnection } from './connection.js';
import { clock } from './upstream.js';

const connectAgainMs = 20;

interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  /** Sent in turn on every connection, each after the complete answer to the last. */
  readonly requests: readonly Buffer[];
  /** Whether an answer is as expected. Default: a whole answer with status 200. */
  readonly accept?: (answer: Answer) => boolean;
  /** Longest pause between an answer and the next request; each pause is random below it. */
  readonly pauseMs?: number;
  /** What to do if a connection is not accepted: retry, or treat it as the end of the server. */
  readonly whenRefused?: 'retry' | 'stop';
}

export interface LoadFailure {
  /** Time by `clock`. */
  readonly at: number;
  readonly reason: string;
  /** The worker that had answered on this connection before, or null for its first request. */
  readonly worker: string | null;
}

/** Running keep-alive clients. */
export interface Load {
  readonly answers: number;
  /** Requests that were sent and not answered as expected. */
  readonly failures: readonly LoadFailure[];
  /** Connections that were not accepted. */
  readonly refused: number;
  /** Time of each worker's last answer, by `clock`. */
  readonly lastAnswerOf: ReadonlyMap<string, number>;
  /** The worker of the last answer on each connection. */
  workers(): (string | null)[];
  /** Resolves when every client has ended, by `stop` or because it was refused. */
  readonly finished: Promise<void>;
  /** Ends every client after its current answer. */
  stop(): Promise<void>;
}

/** Whether an answer is complete with status 200; a stream must also have its own ending. */
export function isWhole(answer: Answer): boolean {
  return answer.status === 200 && (!answer.chunked || answer.endsWithDone);
}

/**
 * Starts clients that send one request after the other. Like any client, they open another connection if theirs was
 * closed between two requests, which does not count as a failure.
 */
export function startLoad(options: LoadOptions): Load {
  const accept = options.accept ?? isWhole;
  const failures: LoadFailure[] = [];
  const lastAnswerOf = new Map<string, number>();
  const workerOf = new Array<string | null>(options.connections).fill(null);
  let answers = 0;
  let refused = 0;
  let stopped = false;

  const connect = async (): Promise<ClientConnection | null> => {
    while (!stopped) {
      try {
        return await openConnection(options.port);
      } catch {
        refused += 1;
        if (options.whenRefused === 'stop') return null;
        await pause(connectAgainMs);
      }
    }
    return null;
  };

  const ask = async (connection: ClientConnection, client: number, request: Buffer): Promise<void> => {
    try {
      const answer = await connection.ask(request);
      workerOf[client] = answer.worker;
      lastAnswerOf.set(answer.worker, clock());
      answers += 1;
      if (accept(answer)) return;
      const reason = `status ${answer.status}${answer.chunked ? ', a stream' : ''} ${answer.text.slice(0, 200)}`;
      failures.push({ at: clock(), reason, worker: answer.worker });
    } catch (error) {
      failures.push({
        at: clock(),
        reason: error instanceof Error ? error.message : String(error),
        worker: workerOf[client] ?? null,
      });
    }
  };

  const run = async (client: number): Promise<void> => {
    let connection: ClientConnection | null = null;
    for (let turn = client; !stopped; turn += 1) {
      if (connection === null || !connection.usable) {
        workerOf[client] = null;
        connection = await connect();
        if (connection === null) break;
      }
      const request = options.requests[turn % options.requests.length];
      if (request !== undefined) await ask(connection, client, request);
      if (options.pauseMs !== undefined) await pause(random() * options.pauseMs);
    }
    connection?.close();
  };

  const finished = Promise.all(workerOf.map((_, client) => run(client))).then(() => {});
  return {
    get answers() {
      return answers;
    },
    get refused() {
      return refused;
    },
    failures,
    lastAnswerOf,
    workers: () => [...workerOf],
    finished,
    stop() {
      stopped = true;
      return finished;
    },
  };
}

/** Lists the reasons of failures with their counts, for a message. */
export function describeFailures(failures: readonly LoadFailure[]): string {
  const counts = new Map<string, number>();
  for (const { reason } of failures) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, count]) => `${count} x ${reason}`).join('; ');
}
