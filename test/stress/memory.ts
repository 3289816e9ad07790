import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../support/load/connection.js';
import { type Load, type LoadFailure, startLoad } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { median, watchMemory } from '../support/process-memory.js';
import { openStream, readOnMs } from './leavers.js';
import { onStage } from './stage.js';

interface MemoryPlan {
  readonly seconds: number;
}

interface MemoryFigures {
  readonly answers: number;
  readonly left: number;
  readonly failures: readonly LoadFailure[];
  /** Median resident memory in each of the six parts of the time, in MB. */
  readonly partsMb: readonly number[];
  readonly openAtEnd: number;
}

const parts = 6;

/** Requests that all end in an error, each of another kind. */
const faulty = [
  loadRequest({ does: 'complete' }, { key: 'sk-wrong' }),
  loadRequest({ does: 'complete' }, { model: 'unknown' }),
  loadRequest({ does: 'complete' }, { body: '{"model":"m","messages":[' }),
  loadRequest({ does: 'complete' }, { body: '{"model":"m"}' }),
  loadRequest({ does: 'fail' }),
];
const cutStream = loadRequest({ does: 'stream', events: 5, everyMs: 5, cut: true });

const isError = (answer: Answer): boolean => answer.status >= 400;
/** Ends with an error event, and so without the event that ends a good stream. */
const isCutStream = (answer: Answer): boolean =>
  answer.status === 200 && answer.chunked && !answer.endsWithDone;

/** One worker under everything that clients do, for a while. */
export function memory(plan: MemoryPlan): Promise<MemoryFigures> {
  return onStage({ logLevel: 'info' }, async (stage) => {
    const { port } = stage.gateway;
    const loads: Load[] = [
      startLoad({ port, connections: 8, requests: [loadRequest({ does: 'complete' })] }),
      startLoad({
        port,
        connections: 8,
        requests: [loadRequest({ does: 'complete' }, { promptLength: 50_000 })],
        pauseMs: 20,
      }),
      startLoad({
        port,
        connections: 8,
        requests: [loadRequest({ does: 'stream', events: 50, everyMs: 5 })],
      }),
      startLoad({
        port,
        connections: 2,
        requests: [loadRequest({ does: 'flood', megabytes: 4 })],
        pauseMs: 200,
      }),
      startLoad({ port, connections: 4, requests: faulty, accept: isError, pauseMs: 5 }),
      startLoad({ port, connections: 4, requests: [cutStream], accept: isCutStream }),
    ];
    let stopped = false;
    let left = 0;
    const leave = async (client: number): Promise<void> => {
      for (let turn = client; !stopped; turn += 1) {
        const socket = await openStream(stage, '');
        if (turn % 2 === 0) socket.end();
        else socket.resetAndDestroy();
        await pause(5);
        socket.destroy();
        left += 1;
      }
    };
    const leaving = Promise.all([0, 1, 2, 3].map(leave));
    // Its end is awaited later.
    leaving.catch(() => {});
    const watch = watchMemory(stage.worker);
    await pause(plan.seconds * 1000);
    const samples = watch.stop();
    stopped = true;
    await Promise.all([leaving, ...loads.map((load) => load.stop())]);
    const size = Math.floor(samples.length / parts);
    return {
      answers: loads.reduce((sum, load) => sum + load.answers, 0),
      left,
      failures: loads.flatMap((load) => load.failures),
      partsMb: Array.from({ length: parts }, (_, part) =>
        median(samples.slice(part * size, (part + 1) * size)),
      ),
      // Some of the disconnected clients' answers are read on.
      openAtEnd: (await stage.upstream.stateWhen((state) => state.open === 0, readOnMs + 1000)).open,
    };
  });
}
