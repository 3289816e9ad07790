import t, { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { simulate } from '../support/simulator.js';
import { askTask, contentOf, taskClientFormats, untilEnded } from '../support/tasks/client.js';
import { tasksGateway } from '../support/tasks/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('a task survives a kill of every process right after its create answer', async (t) => {
  const simulator = await simulate(t, { videoPace: { queuedMs: 0, runningMs: 600 } });
  const folder = temporaryFolder(t);
  const options = {
    upstreamUrl: simulator.url,
    store: { kind: 'embedded', path: folder },
    workers: 2,
  };
  const first = await startGateway(t, tasksGateway(options));
  t.teardown(() => first.end());
  const prompt = '[[video:bytes=300000]] a fox';
  const { status, body } = await askTask(first.baseUrl, taskClientFormats.compat.create(prompt));
  await first.end();
  t.equal(status, 200);
  const id = String(body.id);

  const second = await startGateway(t, tasksGateway(options));
  t.teardown(() => second.end());
  for (const [format, clientFormat] of Object.entries(taskClientFormats)) {
    const ended = await untilEnded(second.baseUrl, id, clientFormat);
    t.match([ended.status, clientFormat.stateIn(ended.body)], [200, 'completed'], format);
  }
  const content = await contentOf(second.baseUrl, id);
  const upstreamId = upstreamIdOf(simulator.lastRequest()?.target);
  const own = await fetch(`${simulator.url}/videos/${upstreamId}/content`);
  t.equal(content.bytes.length, 300_000);
  t.ok(content.bytes.equals(Buffer.from(await own.arrayBuffer())));
  t.equal(simulator.state().videosMade, 1);
});

function upstreamIdOf(target = ''): string {
  return /^\/v1\/videos\/([^/]+)\/content$/.exec(target)?.[1] ?? '';
}

t.end();
