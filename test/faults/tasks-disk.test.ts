import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { simulate } from '../support/simulator.js';
import { askTask, taskClientFormats } from '../support/tasks/client.js';
import { tasksGateway } from '../support/tasks/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startChatLoad } from './tasks-chat.js';

test('a store that cannot be written is told, and harms nothing else', async (t) => {
  const simulator = await simulate(t);
  const folder = temporaryFolder(t);
  // Not even root can make a folder in a file.
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const gateway = await startGateway(
    t,
    tasksGateway({
      upstreamUrl: simulator.url,
      store: { kind: 'embedded', path: join(file, 'data') },
    }),
  );
  t.teardown(() => gateway.end());
  const chat = startChatLoad(gateway.port);
  for (const clientFormat of Object.values(taskClientFormats)) {
    for (const request of [clientFormat.create('a fox'), clientFormat.show('video_1')]) {
      const { status, headers } = await askTask(gateway.baseUrl, request);
      t.equal(status, 503, `${request.method} ${request.path}`);
      t.equal(headers.get('retry-after'), '1');
    }
  }
  const { status, body } = await askTask(gateway.baseUrl, taskClientFormats.compat.show('video_1'));
  t.equal(status, 503);
  t.match(body, { error: { code: 'store_unavailable', message: /gateway cannot reach its store/ } });
  const { answers, problems } = await chat.stop();
  t.strictSame(problems, []);
  t.ok(answers > 0);
  t.equal(simulator.state().videosMade, 0);
});

t.end();
