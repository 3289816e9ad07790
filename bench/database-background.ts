import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { parsePostgresUrl, storeDefaults } from '../src/config/store-settings.js';
import { createStore } from '../src/store/create.js';
import { newTask, submitted } from '../src/video/advance.js';
import { submissionHere, TaskBook } from '../src/video/book.js';
import { readCompatBody } from '../src/video/client-formats/compat.js';
import { sweepKept } from '../src/video/content-folder.js';
import { startProcesses } from '../test/support/gateway-processes.js';
import { startPostgres } from '../test/support/postgres.js';

/*
 * Measures what the background work of a host's workers costs one PostgreSQL, without any client call: polling tasks
 * under way, correcting charges, finding records of interrupted calls.
 */

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '8' },
    /** Number of video tasks that are under way throughout. */
    tasks: { type: 'string', default: '0' },
    /** Age of the tasks in seconds. Those of ten minutes or more are polled about once a minute. */
    age: { type: 'string', default: '600' },
    /** Number of videos in the folder that each worker sweeps once a minute. */
    videos: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '20' },
  },
});
const numbers: Record<string, number> = {};
for (const [name, text] of Object.entries(values)) numbers[name] = Number(text);
const { workers = 0, tasks = 0, age = 0, videos = 0, seconds = 0 } = numbers;

let asked = 0;
const upstream = createServer((_request, response) => {
  asked += 1;
  response.setHeader('content-type', 'application/json').end('{"id":"theirs","status":"in_progress"}');
}).listen(0, '127.0.0.1');
await new Promise((resolve) => upstream.once('listening', resolve));
const { port: upstreamPort } = upstream.address() as AddressInfo;
const server = await startPostgres();
if (server === null) throw new Error('there is no PostgreSQL');
const store = { kind: 'postgres', url: server.url };
const gateway = await startProcesses(
  // Ended below instead.
  { teardown: () => {} },
  {
    workers,
    file: {
      store,
      secret: 'of-the-hosts-that-share-the-store-0123456789',
      upstreams: {
        bench: { kind: 'chat', baseUrl: `http://127.0.0.1:${upstreamPort}/v1`, apiKeys: ['sk-upstream'] },
      },
      models: { film: { protocols: ['video'], targets: [{ upstream: 'bench', model: 'film' }] } },
      groups: { default: { models: ['*'] } },
      keys: [],
    },
  },
);

async function makeTasks(url: string): Promise<void> {
  const address = parsePostgresUrl(url);
  if ('problem' in address) throw new Error(address.problem);
  const own = createStore({
    kind: 'postgres',
    ...address,
    schema: storeDefaults.schema,
    timeoutMs: 5000,
    taskDays: 1,
  });
  const book = new TaskBook(own);
  for (let made = 0; made < tasks; made += 1) {
    const id = `video_${made.toString(16).padStart(32, '0')}`;
    const task = newTask({
      id,
      keyId: 'bench',
      groups: ['default'],
      request: readCompatBody({ model: 'film', prompt: 'A cat', seconds: '4', size: '1280x720' }),
      upstream: { name: 'bench', format: 'compat', model: 'film', credential: null },
      now: Date.now() - age * 1000,
      ttlMs: 86_400_000,
    });
    await book.open(task, submissionHere(id, 60_000), null);
    await book.recordSubmission(submitted(task, { id: 'theirs', update: null }, Date.now()));
  }
  await own.close();
}

/** Measures the CPU time of one sweep with everything that it calls, in milliseconds. */
async function sweepMs(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-sweep-'));
  for (let index = 0; index < videos; index += 1)
    writeFileSync(join(folder, `video_${index.toString(16).padStart(32, '0')}.mp4`), '.');
  const kept = { folder, days: 1, bytes: videos + 1, fileBytes: 1 };
  await sweepKept(kept);
  const start = process.cpuUsage();
  await sweepKept(kept);
  const { user, system } = process.cpuUsage(start);
  rmSync(folder, { recursive: true });
  return (user + system) / 1000;
}

const statements = (): number =>
  Number(server.query("select xact_commit from pg_stat_database where datname = 'postgres'"));

await makeTasks(server.url);
await wait(5000);
const before = { statements: statements(), cpu: server.cpuSeconds(), asked };
await wait(seconds * 1000);
const after = { statements: statements(), cpu: server.cpuSeconds(), asked };
const each = (of: (reading: typeof before) => number): number => (of(after) - of(before)) / seconds;
process.stdout.write(
  `${workers} workers, ${tasks} tasks under way for ${age} s: ${each((reading) => reading.statements).toFixed(1)} statements/s, ` +
    `${(each((reading) => reading.cpu) * 100).toFixed(2)} % of a core of the database, ` +
    `${each((reading) => reading.asked).toFixed(1)} questions/s to the upstream\n`,
);
process.stdout.write(`a sweep of ${videos} videos: ${(await sweepMs()).toFixed(0)} ms of CPU time\n`);
await gateway.end();
await server.stop();
process.exit();
