import t, { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { askTask, taskClientFormats } from '../support/tasks/client.js';
import { tasksGateway, workerLogs } from '../support/tasks/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { jsonAnswer, postsTo, startRawUpstream } from '../support/upstream.js';

const logged = 'a video task was being submitted when its process ended';
const retryMs = 100;

test('a submission that a kill has cut is told at the next start, and not made again', async (t) => {
  // It has made the task, and nobody hears of it.
  const upstream = await startRawUpstream(t, () => {});
  const folder = temporaryFolder(t);
  const options = { upstreamUrl: upstream.url, store: { kind: 'embedded', path: folder } };
  const first = await startGateway(t, tasksGateway(options));
  t.teardown(() => first.end());
  const create = taskClientFormats.compat.create('a fox');
  const idempotencyKey = 'once';
  const cut = t.rejects(askTask(first.baseUrl, create, { idempotencyKey }), TypeError);
  await upstream.request(0);

  const meanwhile = await askTask(first.baseUrl, create, { idempotencyKey });
  t.match([meanwhile.status, meanwhile.body], [409, { error: { code: 'conflict' } }]);
  t.equal(meanwhile.headers.get('retry-after'), '1');
  const others = await askTask(first.baseUrl, create, { idempotencyKey, key: 'sk-wrong' });
  t.equal(others.status, 401);
  await first.end();
  await cut;

  const second = await startGateway(t, tasksGateway(options));
  t.teardown(() => second.end());
  const entry = await second.untilLogged(({ msg }) => String(msg).startsWith(logged));
  t.match(entry, { level: 'error', task: /^video_[0-9a-f]{32}$/, upstream: 'studio', submittedAt: String });
  const id = String(entry.task);
  const { status, body } = await askTask(second.baseUrl, create, { idempotencyKey });
  const failure = { code: 'submission_interrupted', message: /cannot know whether the upstream has made it/ };
  t.match([status, body], [200, { id, status: 'failed', error: failure }]);
  for (const [format, clientFormat] of Object.entries(taskClientFormats)) {
    const shown = await askTask(second.baseUrl, clientFormat.show(id));
    t.match([shown.status, clientFormat.stateIn(shown.body)], [200, 'failed'], format);
  }
  const content = await askTask(second.baseUrl, { method: 'GET', path: `/v1/videos/${id}/content` });
  t.match([content.status, content.body], [404, { error: { message: /has failed/ } }]);
  t.equal(postsTo(upstream).length, 1);
});

test('what a living process submits is left alone by the start of another', async (t) => {
  let answer = (): void => {};
  const upstream = await startRawUpstream(t, ({ socket }) => {
    answer = () => void socket.write(jsonAnswer(200, '{"id":"up-1","status":"queued"}'));
  });
  const folder = temporaryFolder(t);
  const options = { upstreamUrl: upstream.url, store: { kind: 'embedded', path: folder } };
  const first = await startGateway(t, tasksGateway(options));
  t.teardown(() => first.end());
  const create = taskClientFormats.compat.create('a fox');
  const made = askTask(first.baseUrl, create, { idempotencyKey: 'k' });
  await upstream.request(0);
  const second = await startGateway(t, tasksGateway(options));
  t.teardown(() => second.end());
  // Long enough for its first look at what is in the store.
  const until = performance.now() + 1500;
  while (performance.now() < until) {
    const again = await askTask(second.baseUrl, create, { idempotencyKey: 'k' });
    t.equal(again.status, 409);
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
  answer();
  t.match(await made, { status: 200, body: { status: 'queued' } });
  t.strictSame(workerLogs(second), []);
  t.equal(postsTo(upstream).length, 1);
});

t.end();
