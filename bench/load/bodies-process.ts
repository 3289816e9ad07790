import { readFileSync } from 'node:fs';
import { describeErrors } from './load.js';
import { openConnection } from './raw-connection.js';

interface BodiesPlan {
  readonly port: number;
  readonly path: string;
  readonly key: string;
  readonly bodyFile: string;
  readonly connections: number;
}

export interface BodiesResult {
  readonly answered: number;
  readonly seconds: number;
  readonly errors: readonly string[];
}

/** Runs as a separate process with a plan as JSON: one request on each of many connections, all concurrently. */
const plan = JSON.parse(process.argv[2] ?? '{}') as BodiesPlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const request = Buffer.from(
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const giveUpMs = 120_000;
const counts: Record<string, number> = {};
let answered = 0;
let settled = 0;
const startedAt = performance.now();

function settle(outcome: string): void {
  if (outcome === '200') answered += 1;
  else counts[outcome] = (counts[outcome] ?? 0) + 1;
  settled += 1;
  if (settled === plan.connections) report();
}

function report(): void {
  const errors = describeErrors({ ...counts, 'requests without an answer': plan.connections - settled });
  const result: BodiesResult = { answered, seconds: (performance.now() - startedAt) / 1000, errors };
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
}

setTimeout(report, giveUpMs);
for (let id = 0; id < plan.connections; id += 1) {
  let done = false;
  const once = (outcome: string): void => {
    if (done) return;
    done = true;
    settle(outcome);
  };
  openConnection(plan.port, {
    onAnswer: (status) => once(status === 200 ? '200' : `answers with status ${status}`),
    onBreak: () => once('connections that broke'),
  }).then(
    (socket) => socket.write(request),
    () => once('connections that were refused'),
  );
}
