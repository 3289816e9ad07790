import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { seenWithin } from '../support/eventually.js';
import { residentMb, watchMemory } from '../support/process-memory.js';
import { random } from '../support/seed.js';
import { askTurn, dial, dialAll, onRealtimeStage, type RealtimeStage, socketsOf } from './realtime-stage.js';

interface CutsPlan {
  /** Sessions of a round. */
  readonly sessions: number;
  readonly rounds: number;
  /** Sessions that begin in a second. */
  readonly perSecond: number;
  /** How long cut sessions may remain anywhere. */
  readonly withinMs: number;
}

interface CutsFigures {
  /** Sessions that were open at some time. */
  readonly opened: number;
  /** Number of clients for each received close code. */
  readonly codes: Readonly<Record<number, number>>;
  /** Sockets of the worker before the first round and after each. */
  readonly sockets: readonly number[];
  /** Sessions open at the upstream after each round. */
  readonly openUpstream: readonly number[];
  readonly residentMb: readonly number[];
}

/** A random time within a turn of 100 tokens at 200 a second. */
const longestMs = 600;
const cuts = ['close', 'close=1011 reason=x', 'reset', 'truncate'];
const leave: readonly ((socket: WebSocket) => void)[] = [
  (socket) => socket.close(1000),
  (socket) => socket.close(),
  (socket) => socket.terminate(),
  (socket) => {
    const connection = Reflect.get(socket, '_socket') as Socket | null | undefined;
    if (connection) connection.resetAndDestroy();
    else socket.terminate();
  },
];

/** Sessions in the middle of a turn, half of them cut by their client, half by the upstream, at random times. */
export function cutSessions(plan: CutsPlan): Promise<CutsFigures> {
  // As many as the key may have: slots that were not returned would show as refusals.
  const options = { perKey: plan.sessions, tokensPerSecond: 200 };
  return onRealtimeStage(options, async (stage) => {
    const codes: Record<number, number> = {};
    const sockets = [socketsOf(stage.worker)];
    const openUpstream: number[] = [];
    const resident: number[] = [];
    let opened = 0;
    for (let round = 0; round < plan.rounds; round += 1) {
      const sessions = Array.from({ length: plan.sessions }, async (_, index) => {
        await pause((index / plan.perSecond) * 1000);
        const heard = await cutSession(stage, index);
        codes[heard.code] = (codes[heard.code] ?? 0) + 1;
        opened += heard.opened ? 1 : 0;
      });
      await Promise.all(sessions);
      const [before = 0] = sockets;
      sockets.push(await allGone(stage, before, plan.withinMs));
      const { openSessions } = await seenWithin(stage.state, {
        fits: (state) => state.openSessions === 0,
        withinMs: plan.withinMs,
        everyMs: 20,
      });
      openUpstream.push(openSessions);
      resident.push(residentMb(stage.worker));
    }
    return { opened, codes, sockets, openUpstream, residentMb: resident };
  });
}

function cutSession(stage: RealtimeStage, index: number): Promise<{ opened: boolean; code: number }> {
  const socket = dial(stage);
  const byClient = index % 2 === 0;
  const kind = Math.floor(index / 2) % leave.length;
  const after = Math.floor(random() * 100);
  let opened = false;
  socket.once('open', () => {
    opened = true;
    askTurn(
      socket,
      `[[fault:${byClient ? 'long=100' : `${cuts[kind]} after=${after}`}]] [[fault:long=100]] x`,
    );
  });
  // Some before they are open.
  const timer = byClient ? setTimeout(() => leave[kind]?.(socket), random() * longestMs) : undefined;
  return new Promise((resolve) => {
    socket.once('close', (code) => {
      clearTimeout(timer);
      resolve({ opened, code });
    });
  });
}

interface DeafPlan {
  readonly megabytes: number;
  /** How long the client does not read. */
  readonly deafSeconds: number;
}

interface DeafFigures {
  readonly beforeMb: number;
  /** Peak memory while the client does not read, and while it reads. */
  readonly deafMb: number;
  readonly readingMb: number;
  /** Bytes that arrived after that. */
  readonly bytes: number;
  /** Whether the turn ended. */
  readonly whole: boolean;
  readonly readingSeconds: number;
}

const warmUpMegabytes = 5;

/** A client that requests a flood, does not read for a while, and then reads all of it. */
export function deafClient({ megabytes, deafSeconds }: DeafPlan): Promise<DeafFigures> {
  return onRealtimeStage({ perKey: 10, tokensPerSecond: 0 }, async (stage) => {
    // More would leave so much free memory that growth would not show.
    await flood(stage, warmUpMegabytes, 0);
    const beforeMb = residentMb(stage.worker);
    const deaf = watchMemory(stage.worker);
    let reading = deaf;
    const { bytes, whole, readingSeconds } = await flood(stage, megabytes, deafSeconds, () => {
      deaf.stop();
      reading = watchMemory(stage.worker);
    });
    return {
      beforeMb,
      deafMb: Math.max(...deaf.samples),
      readingMb: Math.max(...reading.stop()),
      bytes,
      whole,
      readingSeconds,
    };
  });
}

async function flood(
  stage: RealtimeStage,
  megabytes: number,
  deafSeconds: number,
  onListening: () => void = () => {},
): Promise<{ bytes: number; whole: boolean; readingSeconds: number }> {
  const [socket] = (await dialAll(stage, 1)) as [WebSocket];
  let bytes = 0;
  let whole = false;
  const over = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      bytes += data.length;
      // Skips deltas by their size.
      if (data.length > 10_000 || !data.includes('"response.done"')) return;
      whole = true;
      socket.terminate();
    });
    socket.once('close', () => resolve());
  });
  socket.pause();
  askTurn(socket, `[[fault:flood=${megabytes}]] x`);
  await pause(deafSeconds * 1000);
  onListening();
  const begunAt = performance.now();
  socket.resume();
  await over;
  return { bytes, whole, readingSeconds: (performance.now() - begunAt) / 1000 };
}

interface CrowdPlan {
  readonly idle: number;
  readonly busy: number;
  readonly seconds: number;
}

interface CrowdFigures {
  readonly beforeMb: number;
  /** Memory with only the idle sessions, and its peak with the busy ones. */
  readonly idleMb: number;
  readonly busyMb: number;
  readonly events: number;
  readonly turns: number;
  readonly lost: number;
  /** Share of one core that the worker used while sessions were busy. */
  readonly load: number;
  readonly afterMb: number;
  readonly socketsLeft: number;
}

/** Many idle sessions, and some that have one turn after another. */
export function crowd({ idle, busy, seconds }: CrowdPlan): Promise<CrowdFigures> {
  return onRealtimeStage({ perKey: idle + busy, tokensPerSecond: 50 }, async (stage) => {
    const { worker } = stage;
    const figures = { events: 0, turns: 0, lost: 0 };
    const before = socketsOf(worker);
    for (const socket of await dialAll(stage, busy)) socket.terminate();
    await allGone(stage, before);
    const beforeMb = residentMb(worker);
    const resting = await dialAll(stage, idle);
    const idleMb = residentMb(worker);
    const working = await dialAll(stage, busy);
    for (const socket of [...resting, ...working]) {
      socket.once('close', () => {
        figures.lost += 1;
      });
    }
    for (const socket of working) {
      const begin = (): void => askTurn(socket, '[[fault:long=50]] a turn of a second');
      socket.on('message', (data: Buffer) => {
        figures.events += 1;
        if (!data.includes('"response.done"')) return;
        figures.turns += 1;
        begin();
      });
      begin();
    }
    const memory = watchMemory(worker);
    const cpu = cpuSeconds(worker);
    const begunAt = performance.now();
    await pause(seconds * 1000);
    const load = (cpuSeconds(worker) - cpu) / ((performance.now() - begunAt) / 1000);
    const told = { ...figures };
    for (const socket of [...resting, ...working]) socket.terminate();
    const left = await allGone(stage, before);
    return {
      ...told,
      beforeMb,
      idleMb,
      busyMb: Math.max(...memory.stop()),
      load,
      afterMb: residentMb(worker),
      socketsLeft: left - before,
    };
  });
}

/** Waits until the worker has no more sockets than before, for a limited time. @returns their number */
function allGone({ worker }: RealtimeStage, before: number, withinMs = 10_000): Promise<number> {
  return seenWithin(() => socketsOf(worker), { fits: (now) => now <= before, withinMs, everyMs: 20 });
}

/** Returns the processor time of a process (proc_pid_stat(5)). */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticksPerSecond = 100;
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
