import { setTimeout as pause } from 'node:timers/promises';
import type { Exit } from '../support/gateway-processes.js';
import { openConnection } from '../support/load/connection.js';
import { isWhole, type Load, type LoadFailure, startLoad } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { clock } from '../support/load/upstream.js';
import { onStage } from './stage.js';

interface DrainPlan {
  readonly workers: number;
  /** Clients that send requests without a pause, and as many again for immediate answers. */
  readonly busy: number;
  /** Clients that pause between an answer and their next request. */
  readonly pausing: number;
  /** Streams that are open at the signal. */
  readonly streams: number;
  readonly streamSeconds: number;
  /** Duration of the load before the signal. */
  readonly seconds: number;
}

interface DrainFigures {
  readonly answers: number;
  readonly failures: readonly LoadFailure[];
  /** Streams with their own ending. */
  readonly streamsWhole: number;
  readonly exit: Exit;
  /** From the signal to the end of the process. */
  readonly drainedMs: number;
}

const eventEveryMs = 50;
const longestPauseMs = 150;
const quick = loadRequest({ does: 'complete' });
const mixed = [
  quick,
  loadRequest({ does: 'complete', afterMs: 20 }),
  loadRequest({ does: 'stream', events: 5, everyMs: 20 }),
];

/** Ends a gateway under load. Its clients continue until their connections are refused. */
export function drain(plan: DrainPlan): Promise<DrainFigures> {
  return onStage({ workers: plan.workers }, async ({ gateway, upstream }) => {
    const clients = (connections: number, requests: readonly Buffer[], pauseMs?: number): Load =>
      startLoad({ port: gateway.port, connections, requests, pauseMs, whenRefused: 'stop' });
    const loads = [
      clients(plan.busy, [quick]),
      clients(plan.busy, mixed),
      clients(plan.pausing, mixed, longestPauseMs),
    ];
    await pause(plan.seconds * 1000);
    const streamRequest = loadRequest(
      { does: 'stream', events: (plan.streamSeconds * 1000) / eventEveryMs, everyMs: eventEveryMs },
      { name: 'open' },
    );
    const streams = Array.from({ length: plan.streams }, async () => {
      try {
        return isWhole(await (await openConnection(gateway.port)).ask(streamRequest));
      } catch {
        return false;
      }
    });
    await upstream.stateWhen((state) => state.openNamed >= plan.streams, 60_000);
    const signalledAt = clock();
    gateway.kill('SIGTERM');
    const exit = await gateway.exited;
    const drainedMs = clock() - signalledAt;
    await Promise.all(loads.map((load) => load.finished));
    return {
      answers: loads.reduce((sum, load) => sum + load.answers, 0),
      failures: loads.flatMap((load) => load.failures),
      streamsWhole: (await Promise.all(streams)).filter(Boolean).length,
      exit,
      drainedMs,
    };
  });
}
