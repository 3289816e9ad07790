import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { openConnection } from './raw-connection.js';

export interface IdlePlan {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bodyFile: string;
  readonly connections: number;
  readonly warmUpCalls: number;
}

/** The second line, after `null`, which means that the contender is warm and has no connection any more. */
export interface IdleOpen {
  readonly open: number;
  readonly refused: number;
  readonly seconds: number;
}

/** The third line: what is open after `holdMs`. */
export interface IdleHeld {
  readonly open: number;
}

/** How long the connections are idle. uWebSockets.js closes one that is idle for 8 s. */
const holdMs = 2_000;

/**
 * Runs as a separate process with a plan as JSON: opens connections, makes one call on each, and leaves them idle.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as IdlePlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const headers = Object.entries(plan.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
const request = Buffer.from(
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n` +
    `content-type: application/json\r\n${headers.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const atOnce = 50;
/** Length of each connection's answer with its head. */
const readBytes = 2_048;
const enoughRefusals = 200;
const sockets: Socket[] = [];
let open = 0;
let refused = 0;

/** @param calls number of successive calls on it; the connection stays open */
async function call(calls: number): Promise<void> {
  let left = calls;
  let end: () => void = () => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  const listener = {
    onAnswer: (status: number) => {
      left -= 1;
      if (status !== 200) socket.destroy();
      else if (left > 0) socket.write(request);
      else end();
    },
    onBreak: () => {
      open -= 1;
      if (left > 0) refused += 1;
      end();
    },
  };
  const socket = await openConnection(plan.port, listener, readBytes);
  open += 1;
  sockets.push(socket);
  socket.on('error', () => socket.destroy());
  socket.write(request);
  await done;
}

let left = plan.connections;
async function opener(): Promise<void> {
  while (left > 0 && refused < enoughRefusals) {
    left -= 1;
    await call(1).catch(() => {
      refused += 1;
    });
  }
}

const say = (line: IdleOpen | IdleHeld | null): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);

await Promise.all(Array.from({ length: atOnce }, () => call(plan.warmUpCalls / atOnce)));
for (const socket of sockets.splice(0)) socket.destroy();
await wait(1_000);
if (refused > 0) throw new Error(`${refused} calls of the warm-up failed`);
say(null);
// Time in which the bench reads the memory after the warm-up.
await wait(1_000);
const startedAt = performance.now();
await Promise.all(Array.from({ length: atOnce }, opener));
say({ open, refused, seconds: (performance.now() - startedAt) / 1000 });
await wait(holdMs);
say({ open });
process.exit();
