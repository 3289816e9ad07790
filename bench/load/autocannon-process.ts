import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { callerAt } from '../callers.js';
import { describeErrors, type LoadPlan, type LoadResult } from './load.js';

/** Runs as a separate process with the path of a plan as JSON. Prints the result as one line of JSON. */
const { planFile } = JSON.parse(process.argv[2] ?? '{}') as { planFile: string };
const plan = JSON.parse(readFileSync(planFile, 'utf8')) as LoadPlan;
const body = readFileSync(plan.bodyFile, 'utf8');
const requests = plan.callers.map(({ key, model }) => ({
  method: 'POST' as const,
  path: plan.path,
  headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...plan.headers },
  body: body.replace(callerAt(0).model, model),
}));
let clients = 0;

const found = await autocannon({
  url: `${plan.secure ? 'https' : 'http'}://127.0.0.1:${plan.port}`,
  tlsOptions: { rejectUnauthorized: false },
  connections: plan.connections,
  duration: plan.seconds,
  timeout: 10,
  requests: requests.slice(0, 1),
  // Each connection builds all of its requests in advance. With all callers on every connection, memory ran out.
  setupClient(client) {
    const first = clients++;
    const own = requests.filter((_request, index) => index % plan.connections === first);
    if (own.length > 0) client.setRequests(own);
  },
});
const result: LoadResult = {
  requestsPerSecond: found.requests.average,
  p50Us: found.latency.p50 * 1000,
  p99Us: found.latency.p99 * 1000,
  errors: describeErrors({
    'answers that are not 2xx': found.non2xx,
    'connection errors': found.errors - found.timeouts,
    timeouts: found.timeouts,
  }),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
