import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export interface SteadyLoad {
  answers: number;
  /** What became of the requests that were not answered with 200. */
  readonly failures: string[];
  /** Sends nothing more, and resolves when everything under way has ended. */
  stop(): Promise<void>;
}

/** Asks for the model list at a steady pace at most, each time on a connection of its own. */
export function startSteadyLoad(port: number, key: string, perSecond: number): SteadyLoad {
  const headers = { authorization: `Bearer ${key}` };
  const underWay = new Set<Promise<void>>();
  const ask = (): Promise<void> =>
    new Promise((resolve) => {
      const sent = request({ host: '127.0.0.1', port, path: '/v1/models', headers, agent: false });
      sent.on('response', (answer) => {
        answer.resume();
        answer.on('error', (error) => load.failures.push(error.message));
        answer.on('end', () => {
          if (answer.statusCode === 200) load.answers += 1;
          else load.failures.push(`status ${answer.statusCode}`);
        });
        answer.on('close', resolve);
      });
      sent.on('error', (error) => {
        load.failures.push(error.message);
        resolve();
      });
      sent.end();
    });
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      // What a busy machine was too late for is left out: making up for it would be another load.
      if (underWay.size < perSecond) {
        const asked = ask();
        underWay.add(asked);
        asked.then(() => underWay.delete(asked));
      }
      await pause(1000 / perSecond);
    }
  };
  const ran = run();
  const load: SteadyLoad = {
    answers: 0,
    failures: [],
    async stop() {
      isStopped = true;
      await ran;
      await Promise.all(underWay);
    },
  };
  return load;
}
