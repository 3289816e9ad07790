import t, { test } from 'tap';
import { startSimulator } from '../../src/simulator/server.js';
import { askTask, contentOf, taskFaces, untilEnded } from '../support/tasks/client.js';
import { killGateway, startTasksGateway, storeFolder } from '../support/tasks/gateway.js';

test('a task survives a kill of every process right after its create answer', async (t) => {
  const simulator = await startSimulator({ videoPace: { queuedMs: 0, runningMs: 600 } });
  const folder = storeFolder();
  const options = {
    upstreamUrl: simulator.url,
    store: { kind: 'embedded', path: folder.path },
    workers: 2,
  };
  const first = await startTasksGateway(options);
  t.teardown(async () => {
    await killGateway(first);
    await simulator.close();
    folder.remove();
  });
  const prompt = '[[video:bytes=300000]] a fox';
  const { status, body } = await askTask(first.baseUrl, taskFaces.compat.create(prompt));
  await killGateway(first);
  t.equal(status, 200);
  const id = String(body.id);

  const second = await startTasksGateway(options);
  t.teardown(() => killGateway(second));
  for (const [format, face] of Object.entries(taskFaces)) {
    const ended = await untilEnded(second.baseUrl, id, face);
    t.match([ended.status, face.stateIn(ended.body)], [200, 'completed'], format);
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
