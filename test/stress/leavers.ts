import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { loadRequest } from '../support/load/request.js';
import { clock } from '../support/load/upstream.js';
import { residentMb } from '../support/process-memory.js';
import { onStage, type Stage } from './stage.js';

export interface LeaversPlan {
  readonly leavers: number;
  readonly rounds: number;
  /** Leavers that go at once, every ten milliseconds. */
  readonly atOnce: number;
  /** How long the upstream may take to have nothing open after the last has left. */
  readonly withinMs: number;
}

export interface LeaversFigures {
  /** Milliseconds from each leaving to the upstream's notice of it. */
  readonly noticedMs: readonly number[];
  /** Requests still open at the upstream that long after the last has left, for each round. */
  readonly open: readonly number[];
  /** Resident memory of the worker at the end of each round. */
  readonly residentMb: readonly number[];
}

const betweenMs = 10;
const eventEveryMs = 100;

/** Clients that leave in the middle of a stream, one half with a FIN, the other with a RST. */
export function leavers(plan: LeaversPlan): Promise<LeaversFigures> {
  return onStage({ logLevel: 'info' }, async (stage) => {
    const leftAt = new Map<string, number>();
    const open: number[] = [];
    const resident: number[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      const names = Array.from({ length: plan.leavers }, (_, index) => `${round}-${index}`);
      const sockets = await Promise.all(names.map((name) => openStream(stage, name)));
      for (const [index, socket] of sockets.entries()) {
        leftAt.set(names[index] ?? '', clock());
        if (index % 2 === 0) socket.end();
        else socket.resetAndDestroy();
        if (index % plan.atOnce === plan.atOnce - 1) await pause(betweenMs);
      }
      open.push((await stage.upstream.stateWhen((state) => state.open === 0, plan.withinMs)).open);
      resident.push(residentMb(stage.worker));
      for (const socket of sockets) socket.destroy();
    }
    const { cancelled } = await stage.upstream.state();
    const noticedMs = cancelled.map(({ name, at }) => at - (leftAt.get(name) ?? Number.NaN));
    return { noticedMs, open, residentMb: resident };
  });
}

/** Opens a stream, and resolves once a part of it has come. */
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
