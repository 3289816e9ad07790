import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { loadRequest } from '../support/load/request.js';
import { clock } from '../support/load/upstream.js';
import { residentMb } from '../support/process-memory.js';
import { onStage, type Stage, stageConfig } from './stage.js';

interface LeaversPlan {
  readonly leavers: number;
  readonly rounds: number;
  /** Clients that leave concurrently, every ten milliseconds. */
  readonly atOnce: number;
  /** How long the upstream may have requests open after the last client has left. */
  readonly withinMs: number;
}

interface LeaversFigures {
  /** Milliseconds from each disconnection until the upstream notices. */
  readonly noticedMs: readonly number[];
  /** Requests still open at the upstream that long after the last disconnection, for each round. */
  readonly open: readonly number[];
  /** Resident memory of the worker at the end of each round. */
  readonly residentMb: readonly number[];
}

/** Most calls of one key that are read on, and for how long. */
export const mostReadOn = 50;
export const readOnMs = 10_000;
const betweenMs = 10;
const eventEveryMs = 100;

/** Clients that leave in the middle of a stream, half with a FIN, half with a RST. The upstream is cancelled. */
export function leavers(plan: LeaversPlan): Promise<LeaversFigures> {
  return onStage({ logLevel: 'info', config: cancelling }, async (stage) => {
    const leftAt = new Map<string, number>();
    const open: number[] = [];
    const resident: number[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      const sockets = await openAndLeave(stage, plan, round, leftAt);
      open.push((await stage.upstream.stateWhen((state) => state.open === 0, plan.withinMs)).open);
      resident.push(residentMb(stage.worker));
      for (const socket of sockets) socket.destroy();
    }
    const { cancelled } = await stage.upstream.state();
    const noticedMs = cancelled.map(({ name, at }) => at - (leftAt.get(name) ?? Number.NaN));
    return { noticedMs, open, residentMb: resident };
  });
}

/** A config that cancels an upstream as soon as its client leaves. */
function cancelling(upstreamUrl: string): Readonly<Record<string, unknown>> {
  const config = stageConfig(upstreamUrl);
  return { ...config, upstreams: { load: { ...config.upstreams.load, onLeave: 'cancel' } } };
}

interface DrainedFigures {
  /** Requests still open at the upstream after the last disconnection. */
  readonly readOn: number;
  /** The same after the time for which they are read on. */
  readonly openAtEnd: number;
}

/** The same with one round of clients whose upstream is read on, which is the default. */
export function drainedLeavers(plan: LeaversPlan): Promise<DrainedFigures> {
  return onStage({ logLevel: 'info' }, async (stage) => {
    const { upstream } = stage;
    const sockets = await openAndLeave(stage, plan, 0, new Map());
    const { open: readOn } = await upstream.stateWhen(({ open }) => open <= mostReadOn, plan.withinMs);
    const withinMs = readOnMs + plan.withinMs;
    const { open: openAtEnd } = await upstream.stateWhen(({ open }) => open === 0, withinMs);
    for (const socket of sockets) socket.destroy();
    return { readOn, openAtEnd };
  });
}

/** @param leftAt receives the time at which each left, by its name */
async function openAndLeave(
  stage: Stage,
  { leavers: count, atOnce }: LeaversPlan,
  round: number,
  leftAt: Map<string, number>,
): Promise<readonly Socket[]> {
  const names = Array.from({ length: count }, (_, index) => `${round}-${index}`);
  const sockets = await Promise.all(names.map((name) => openStream(stage, name)));
  for (const [index, socket] of sockets.entries()) {
    leftAt.set(names[index] ?? '', clock());
    if (index % 2 === 0) socket.end();
    else socket.resetAndDestroy();
    if (index % atOnce === atOnce - 1) await pause(betweenMs);
  }
  return sockets;
}

/** Opens a stream. Resolves once a part of it has arrived. */
export function openStream(stage: Stage, name: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      port: stage.gateway.port,
      host: '127.0.0.1',
      noDelay: true,
      allowHalfOpen: true,
    });
    socket.write(loadRequest({ does: 'stream', events: 10_000, everyMs: eventEveryMs }, { name }));
    let received = '';
    const onData = (data: Buffer): void => {
      received += data.toString('latin1');
      if (!received.includes('data: ')) return;
      socket.off('data', onData);
      socket.resume();
      resolve(socket);
    };
    socket.on('data', onData);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed before the stream began')));
  });
}
