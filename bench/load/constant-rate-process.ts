import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { quantile } from '../figures.js';
import type { ConstantRatePlan, ConstantRateResult } from './constant-rate.js';
import { describeErrors } from './load.js';
import { openConnection } from './raw-connection.js';

/**
 * Run as its own process with a plan as JSON; prints the result as one line of JSON. Requests leave on a schedule,
 * whatever the answers do; one that finds no free connection waits, and its latency counts from when it was due, so
 * a stall shows in every request that it held up.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as ConstantRatePlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const request = Buffer.from(
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const now = (): number => Number(process.hrtime.bigint()) / 1000;

const skipped = plan.rate * plan.warmUpSeconds;
const total = skipped + plan.rate * plan.seconds;
const fromDue = new Float64Array(total - skipped);
const fromTurn = new Float64Array(total - skipped);
const late = new Float64Array(total - skipped);
const counts = {
  'answers that are not 200': 0,
  'connections that broke': 0,
  'requests without an answer': 0,
};
let begun = 0;
let ended = 0;

interface Flight {
  readonly index: number;
  readonly due: number;
  readonly turn: number;
}
const waiting: Flight[] = [];
const flights = new Map<number, Flight>();
const connections = await Promise.all(
  Array.from({ length: plan.connections }, (_, id) =>
    openConnection(plan.port, {
      onAnswer: (status) => finish(id, status),
      onBreak: () => {
        if (ended < total) counts['connections that broke'] += 1;
      },
    }),
  ),
);
const free = connections.map((_, id) => id);

function send(id: number, flight: Flight): void {
  flights.set(id, flight);
  connections[id]?.write(request);
}

function finish(id: number, status: number): void {
  const flight = flights.get(id);
  if (!flight) return;
  const at = now();
  const slot = flight.index - skipped;
  if (slot >= 0) {
    fromDue[slot] = at - flight.due;
    fromTurn[slot] = at - flight.turn;
    late[slot] = flight.turn - flight.due;
    if (status !== 200) counts['answers that are not 200'] += 1;
  }
  ended += 1;
  const next = waiting.shift();
  if (next) send(id, next);
  else free.push(id);
  if (ended === total) report();
}

const ticks = new Worker(new URL('./paced-ticks.js', import.meta.url), {
  workerData: { rate: plan.rate, total },
});
ticks.on('message', (due: number) => {
  const flight = { index: begun, due, turn: now() };
  begun += 1;
  const id = free.shift();
  if (id === undefined) waiting.push(flight);
  else send(id, flight);
});
const giveUp = setTimeout(report, (plan.warmUpSeconds + plan.seconds + 5) * 1000);

function report(): void {
  clearTimeout(giveUp);
  counts['requests without an answer'] = total - ended;
  const result: ConstantRateResult = {
    fromDue: quantiles(fromDue),
    fromTurn: quantiles(fromTurn),
    late: quantiles(late),
    errors: describeErrors(counts),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
}

function quantiles(values: Float64Array): { p50: number; p99: number } {
  const sorted = values.slice().sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}
