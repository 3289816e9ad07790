import t, { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { skipWithoutPostgres } from '../support/postgres.js';
import { askTask, contentOf, taskClientFormats, untilEnded } from '../support/tasks/client.js';
import { otherKey, workerLogs } from '../support/tasks/gateway.js';
import { startHostsStage } from '../support/tasks/hosts.js';

const skip = skipWithoutPostgres();
/** Several times as long as the second in which an upstream is asked once. */
const runningMs = 5000;
/** Longest wait for the store, which nothing is to fail by here. */
const longMs = 20_000;

test('two gateways on one PostgreSQL serve the same tasks, and poll each once a second', {
  skip,
}, async (t) => {
  const { simulator, start } = await startHostsStage(t, { videoPace: { queuedMs: 0, runningMs } }, longMs);
  const [here, there] = await Promise.all([start(), start()]);
  const prompt = '[[video:bytes=300000]] a fox';
  const begunAt = performance.now();
  const made = await askTask(here.baseUrl, taskClientFormats.compat.create(prompt));
  t.equal(made.status, 200);
  const id = String(made.body.id);

  for (const { baseUrl } of [here, there]) {
    for (const [format, clientFormat] of Object.entries(taskClientFormats)) {
      const { status, body } = await askTask(baseUrl, clientFormat.show(id), { key: otherKey });
      const unknown = format === 'vendorj' ? [200, 'not_found'] : [404, undefined];
      t.match([status, clientFormat.stateIn(body)], unknown, format);
    }
    const content = { method: 'GET', path: `/v1/videos/${id}/content` } as const;
    t.equal((await askTask(baseUrl, content, { key: otherKey })).status, 404);
  }

  const ends = await Promise.all(
    [here, there, here, there].map(({ baseUrl }) => untilEnded(baseUrl, id, taskClientFormats.generic)),
  );
  const seconds = (performance.now() - begunAt) / 1000;
  for (const { body } of ends) t.equal(taskClientFormats.generic.stateIn(body), 'completed');
  const { polls } = simulator.state();
  t.ok(polls >= 2 && polls <= Math.floor(seconds) + 1, `${polls} polls in ${seconds} s`);

  const [one, other] = await Promise.all([here, there].map(({ baseUrl }) => contentOf(baseUrl, id)));
  t.match([one?.status, other?.status], [200, 200]);
  t.equal(one?.bytes.length, 300_000);
  t.ok(one?.bytes.equals(other?.bytes ?? Buffer.alloc(0)));
  t.equal(one?.headers.get('etag'), other?.headers.get('etag'));
  const part = await contentOf(there.baseUrl, id, { range: 'bytes=100000-' });
  t.equal(part.status, 206);
  t.ok(part.bytes.equals(one?.bytes.subarray(100_000) ?? Buffer.alloc(0)));
  t.equal(simulator.state().videosMade, 1);
});

test('one idempotency key makes one task over two gateways', { skip }, async (t) => {
  const { simulator, start } = await startHostsStage(t, {}, longMs);
  const [here, there] = await Promise.all([start(), start()]);
  const create = taskClientFormats.compat.create('a fox');
  const ids = new Set<unknown>();
  const attempt = async (baseUrl: string): Promise<void> => {
    const ask = () => askTask(baseUrl, create, { idempotencyKey: 'once' });
    const { status, body } = await eventually(ask, { fits: (answer) => answer.status !== 409 });
    t.equal(status, 200);
    ids.add(body.id);
  };
  await Promise.all([here, there, here, there, here, there].map(({ baseUrl }) => attempt(baseUrl)));
  t.equal(ids.size, 1);
  const { totalRequests, polls } = simulator.state();
  t.equal(totalRequests - polls, 1);
  t.strictSame(workerLogs(here, there), []);
});

t.end();
