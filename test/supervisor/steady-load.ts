import { readFileSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

interface SteadyLoad {
  answers: number;
  /** New connections that were reset before anything was sent back, so that what was asked on them was asked again. */
  resets: number;
  /** What became of the requests that were not answered with 200. */
  readonly failures: string[];
  /** Sends nothing more, and resolves when everything under way has ended. */
  stop(): Promise<void>;
}

/**
 * Without the kernel's help a connection that opens in the microseconds in which a listener closes is reset, and
 * nothing in a process can prevent it. At each of so many closings it is one at most.
 */
export function mostResets(closings: number): number {
  return readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').trim() === '1' ? 0 : closings;
}

/** What is counted of requests. */
type Counts = Omit<SteadyLoad, 'stop'>;

/** Counts what becomes of a request. Resolves when it has ended. */
function ask(load: Counts, options: RequestOptions, body = ''): Promise<void> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', ...options });
    sent.on('response', (answer) => {
      answer.resume();
      answer.on('error', (error) => load.failures.push(error.message));
      answer.on('end', () => {
        if (answer.statusCode === 200) load.answers += 1;
        else load.failures.push(`status ${answer.statusCode}`);
      });
      answer.on('close', resolve);
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // As a client does: on a connection of its own nothing else can have been asked.
      if (options.agent === false && error.code === 'ECONNRESET' && sent.socket?.bytesRead === 0) {
        load.resets += 1;
        ask(load, options, body).then(resolve);
        return;
      }
      load.failures.push(error.message);
      resolve();
    });
    sent.end(body);
  });
}

/** Has clients call one after the other, each on a connection that it keeps as long as it may. */
export function startKeptLoad(
  port: number,
  key: string,
  { clients, body }: { readonly clients: number; readonly body: object },
): SteadyLoad {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  let isStopped = false;
  const counts: Counts = { answers: 0, resets: 0, failures: [] };
  const run = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const options = { port, method: 'POST', path: '/v1/chat/completions', headers, agent };
    while (!isStopped) await ask(counts, options, JSON.stringify(body));
    agent.destroy();
  };
  const ran = Promise.all(Array.from({ length: clients }, run));
  return Object.assign(counts, {
    async stop() {
      isStopped = true;
      await ran;
    },
  });
}

/** Asks for the model list at a steady pace at most, each time on a connection of its own. */
export function startSteadyLoad(port: number, key: string, perSecond: number): SteadyLoad {
  const options = { port, path: '/v1/models', headers: { authorization: `Bearer ${key}` }, agent: false };
  const underWay = new Set<Promise<void>>();
  const counts: Counts = { answers: 0, resets: 0, failures: [] };
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      // What a busy machine was too late for is left out: making up for it would be another load.
      if (underWay.size < perSecond) {
        const asked = ask(counts, options);
        underWay.add(asked);
        asked.then(() => underWay.delete(asked));
      }
      await pause(1000 / perSecond);
    }
  };
  const ran = run();
  return Object.assign(counts, {
    async stop() {
      isStopped = true;
      await ran;
      await Promise.all(underWay);
    },
  });
}
