import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { callerAt } from '../callers.js';
import { quantiles } from '../figures.js';
import type { ConstantRatePlan, ConstantRateResult } from './constant-rate.js';
import { describeErrors } from './load.js';
import { openConnection } from './raw-connection.js';

/**
 * Runs as a separate process with a plan as JSON. Prints `null` once it is warm, then the result as one line of JSON.
 * Requests are sent on a schedule, independent of the answers. A request that finds no free connection waits, and its
 * latency counts from its scheduled time, so that a stall shows in every request that it delays.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as ConstantRatePlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const request = Buffer.from(
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${callerAt(0).key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
/**
 * The request of each connection, into which the caller is written. Requests for all callers would evict others from
 * caches.
 */
const requests = Array.from({ length: plan.connections }, () => Buffer.from(request));
const keyAt = request.indexOf(callerAt(0).key);
const modelAt = request.indexOf(callerAt(0).model);
const now = (): number => Number(process.hrtime.bigint()) / 1000;

const total = plan.rate * plan.seconds;
const fromDue = new Float64Array(total);
const fromTurn = new Float64Array(total);
const late = new Float64Array(total);
const counts = {
  'answers that are not 200': 0,
  'connections that broke': 0,
  'requests without an answer': 0,
};
let begun = 0;
let ended = 0;
/** Numbers of calls that were sent and answered before the measurement. */
let warmUpSent = 0;
let warmUpEnded = 0;
let isWarm = false;

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
        if (!isWarm) throw new Error('a connection broke before the target was warm');
        if (ended < total) counts['connections that broke'] += 1;
      },
    }),
  ),
);
const free = connections.map((_, id) => id);

/** @param call number of the call, including the warm-up: callers take turns over both */
function write(id: number, call: number): void {
  const own = requests[id];
  if (own === undefined) return;
  const { keys, models } = plan.callers;
  own.write(callerAt(call % keys).key, keyAt, 'latin1');
  own.write(callerAt((call % keys) % models).model, modelAt, 'latin1');
  connections[id]?.write(own);
}

function send(id: number, flight: Flight): void {
  flights.set(id, flight);
  write(id, plan.warmUpCalls + flight.index);
}

function warmUp(id: number): void {
  if (warmUpSent === plan.warmUpCalls) return;
  write(id, warmUpSent);
  warmUpSent += 1;
}

function finish(id: number, status: number): void {
  if (status !== 200) counts['answers that are not 200'] += 1;
  if (isWarm) finishMeasured(id);
  else {
    warmUpEnded += 1;
    if (warmUpEnded === plan.warmUpCalls) begin();
    else warmUp(id);
  }
}

function finishMeasured(id: number): void {
  const flight = flights.get(id);
  if (!flight) return;
  const at = now();
  fromDue[flight.index] = at - flight.due;
  fromTurn[flight.index] = at - flight.turn;
  late[flight.index] = flight.turn - flight.due;
  ended += 1;
  const next = waiting.shift();
  if (next) send(id, next);
  else free.push(id);
  if (ended === total) report();
}

connections.forEach((_, id) => {
  warmUp(id);
});

function begin(): void {
  isWarm = true;
  process.stdout.write('null\n');
  const ticks = new Worker(new URL('./paced-ticks.js', import.meta.url), {
    workerData: { rate: plan.rate, total },
  });
  ticks.on('message', onDue);
  setTimeout(report, (plan.seconds + 5) * 1000);
}

function onDue(due: number): void {
  const flight = { index: begun, due, turn: now() };
  begun += 1;
  const id = free.shift();
  if (id === undefined) waiting.push(flight);
  else send(id, flight);
}

function report(): void {
  counts['requests without an answer'] = total - ended;
  const result: ConstantRateResult = {
    fromDue: quantiles(fromDue),
    fromTurn: quantiles(fromTurn),
    late: quantiles(late),
    errors: describeErrors(counts),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
}
