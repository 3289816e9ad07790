import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { startSimulator } from '../../src/simulator/server.js';
import { askTask, taskFaces } from '../support/tasks/client.js';
import { killGateway, startTasksGateway, storeFolder } from '../support/tasks/gateway.js';
import { startChatLoad } from './tasks-chat.js';

test('a store that cannot be written is told, and harms nothing else', async (t) => {
  const simulator = await startSimulator();
  const folder = storeFolder();
  // Not even root can make a folder in a file.
  const file = join(folder.path, 'file');
  writeFileSync(file, '');
  const gateway = await startTasksGateway({
    upstreamUrl: simulator.url,
    store: { kind: 'embedded', path: join(file, 'data') },
  });
  t.teardown(async () => {
    await killGateway(gateway);
    await simulator.close();
    folder.remove();
  });
  const chat = startChatLoad(gateway.port);
  for (const face of Object.values(taskFaces)) {
    for (const request of [face.create('a fox'), face.show('video_1')]) {
      const { status, headers } = await askTask(gateway.baseUrl, request);
      t.equal(status, 503, `${request.method} ${request.path}`);
      t.equal(headers.get('retry-after'), '1');
    }
  }
  const { status, body } = await askTask(gateway.baseUrl, taskFaces.compat.show('video_1'));
  t.equal(status, 503);
  t.match(body, { error: { code: 'store_unavailable', message: /store of the gateway cannot be reached/ } });
  const { answers, problems } = await chat.stop();
  t.strictSame(problems, []);
  t.ok(answers > 0);
  t.equal(simulator.state().videosMade, 0);
});

t.end();
