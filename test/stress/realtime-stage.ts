import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import type { SimulatorState } from '../../src/simulator/server.js';
import type { SimulatorReport } from '../../src/supervisor/messages.js';
import { type GatewayProcesses, startGateway, untilKilled } from '../support/gateway.js';
import { loadKey, loadKeyHash } from '../support/load/request.js';

/** A gateway with one worker, and the simulator in a separate process. */
export interface RealtimeStage {
  readonly gateway: GatewayProcesses;
  readonly worker: number;
  readonly simulatorPid: number;
  state(): Promise<SimulatorState>;
}

interface RealtimeStageOptions {
  /** Most sessions of the key. */
  readonly perKey: number;
  /** Pace of the simulator's answers; 0 for none. */
  readonly tokensPerSecond: number;
}

const simulatorModule = fileURLToPath(new URL('../../src/simulator/main.js', import.meta.url));
const standing = new Set<() => Promise<void>>();

/** Runs `play` on a stage, and ends all of the stage afterwards, whatever happens. */
export async function onRealtimeStage<T>(
  { perKey, tokensPerSecond }: RealtimeStageOptions,
  play: (stage: RealtimeStage) => Promise<T>,
): Promise<T> {
  const simulator = fork(simulatorModule, [], {
    execArgv: [],
    env: {
      ...process.env,
      SIMULATOR_PORT: '0',
      SIMULATOR_LATENCY_MS: '0',
      SIMULATOR_TOKENS_PER_SECOND: String(tokensPerSecond),
    },
  });
  let gateway: GatewayProcesses | null = null;
  const strike = async (): Promise<void> => {
    standing.delete(strike);
    await Promise.all([gateway?.end(), ended(simulator)]);
  };
  standing.add(strike);
  try {
    const [{ port }] = (await once(simulator, 'message')) as [SimulatorReport];
    const url = `http://127.0.0.1:${port}`;
    gateway = await startGateway(untilKilled, {
      workers: 1,
      file: config(`${url}/v1`, perKey),
      env: { LOG_LEVEL: 'warn' },
    });
    return await play({
      gateway,
      worker: gateway.workerPids()[0] ?? 0,
      simulatorPid: simulator.pid ?? 0,
      state: async () => (await (await fetch(`${url}/__simulator/state`)).json()) as SimulatorState,
    });
  } finally {
    await strike();
  }
}

/** Ends what abandoned plays have left. */
export async function strikeRealtime(): Promise<void> {
  await Promise.all([...standing].map((strike) => strike()));
}

function ended(child: ChildProcess): Promise<unknown> | null {
  if (child.exitCode !== null || child.signalCode !== null) return null;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  return exit;
}

function config(baseUrl: string, perKey: number) {
  return {
    sockets: { perKey },
    upstreams: { simulator: { kind: 'chat', baseUrl, apiKeys: ['upstream-key'] } },
    models: { m: { protocols: ['realtime'], targets: [{ upstream: 'simulator', model: 'sim-realtime' }] } },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'load', hash: loadKeyHash, groups: ['default'] }],
  };
}

/** A client's socket that is opening. Its close event reports its errors. */
export function dial({ gateway }: RealtimeStage): WebSocket {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/realtime?model=m`, {
    headers: { authorization: `Bearer ${loadKey}` },
    perMessageDeflate: false,
    maxPayload: 0,
  });
  socket.on('error', () => {});
  return socket;
}

/**
 * Opens this many sessions, a few at a time.
 * @throws Error if one is refused
 */
export async function dialAll(stage: RealtimeStage, count: number): Promise<readonly WebSocket[]> {
  const atOnce = 50;
  const sockets: WebSocket[] = [];
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(atOnce, count - sockets.length) }, () => dial(stage));
    await Promise.all(batch.map((socket) => greeted(socket)));
    sockets.push(...batch);
  }
  return sockets;
}

/** Resolves with the first message. */
function greeted(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('message', () => resolve());
    socket.once('close', (code) => reject(new Error(`a session was closed with ${code}`)));
  });
}

const textOnly = { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } };

/** Requests a text turn. */
export function askTurn(socket: WebSocket, text: string): void {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  for (const event of [textOnly, { type: 'conversation.item.create', item }, { type: 'response.create' }]) {
    socket.send(JSON.stringify(event));
  }
}

/** Returns the number of sockets that a process has open. */
export function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((name) => {
    try {
      return readlinkSync(`${folder}/${name}`).startsWith('socket:');
    } catch {
      // It was closed in the meantime.
      return false;
    }
  }).length;
}
