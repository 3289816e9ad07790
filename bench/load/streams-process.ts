import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Quantiles } from '../figures.js';
import { hostUs, readStamps } from '../upstream/stamp.js';
import { LatencyCounts } from './latency-counts.js';

interface StreamsPlan {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly bodyFile: string;
  /** Headers in addition to those of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly streams: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** The first line: every stream that could be opened has had an event. `refused` counts until the client gives up. */
export interface StreamsOpen {
  readonly open: number;
  readonly refused: number;
  readonly firstRefusal: string;
}

/** The third line, after a `null` at the start of the measurement: what arrived during the measurement. */
export interface StreamsResult {
  readonly eventsPerSecond: number;
  readonly ended: number;
  /** From the times that the upstream writes into the events; 0 if it writes none. */
  readonly delayUs: Quantiles;
}

/**
 * Runs as a separate process with a plan as JSON: opens streams on raw sockets, holds them and counts their events.
 * All sockets read into one buffer, so that the client's own memory has little effect.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as StreamsPlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const headers = Object.entries(plan.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
const request =
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n` +
  `content-type: application/json\r\n${headers.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const mark = Buffer.from('data: ');
const buffer = Buffer.allocUnsafe(65_536);
const openingAtOnce = 100;
const firstEventMs = 5_000;
/** After this many refusals the contender is full. Trying the rest would take minutes. */
const enoughRefusals = 200;

let events = 0;
let ended = 0;
let open = 0;
let refused = 0;
let firstRefusal = '';
const delays = new LatencyCounts();

function countEvents(bytes: number): number {
  const chunk = buffer.subarray(0, bytes);
  let found = 0;
  for (let at = chunk.indexOf(mark); at >= 0; at = chunk.indexOf(mark, at + mark.length)) found += 1;
  readDelays(chunk);
  return found;
}

function readDelays(chunk: Buffer): void {
  const now = hostUs();
  readStamps(chunk, (us) => delays.add((now - us) / 1000));
}

/** Resolves when the stream has had its first event, or has ended without one. */
function openStream(): Promise<void> {
  return new Promise((resolve) => {
    let started = false;
    let answer = '';
    const socket = connect({
      port: plan.port,
      host: '127.0.0.1',
      onread: {
        buffer,
        callback: (bytes) => {
          const found = countEvents(bytes);
          events += found;
          if (!started && found > 0) {
            started = true;
            open += 1;
            socket.setTimeout(0);
            resolve();
          } else if (!started) {
            answer += buffer.toString('latin1', 0, Math.min(bytes, 300));
            // The connection may still be open after a refusal.
            if (!answer.startsWith('HTTP/1.1 200')) socket.destroy();
          }
          return true;
        },
      },
    });
    socket.write(request);
    socket.once('error', (error) => {
      answer ||= error.message;
    });
    socket.once('close', () => {
      if (started) ended += 1;
      else {
        refused += 1;
        firstRefusal ||= answer.slice(0, 300) || 'closed without an answer';
      }
      resolve();
    });
    socket.setTimeout(firstEventMs, () => {
      answer ||= 'no event in time';
      socket.destroy();
    });
  });
}

let left = plan.streams;
const opener = async (): Promise<void> => {
  while (left > 0 && refused < enoughRefusals) {
    left -= 1;
    await openStream();
  }
};
await Promise.all(Array.from({ length: openingAtOnce }, opener));
const opened: StreamsOpen = { open, refused, firstRefusal };
process.stdout.write(`${JSON.stringify(opened)}\n`);
await wait(plan.warmUpSeconds * 1000);
process.stdout.write('null\n');
delays.clear();
const before = { events, at: performance.now() };
await wait(plan.seconds * 1000);
const result: StreamsResult = {
  eventsPerSecond: ((events - before.events) * 1000) / (performance.now() - before.at),
  ended,
  delayUs: delays.quantilesUs(),
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
