import { once } from 'node:events';
import { existsSync, truncateSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { Beginning } from '../../../src/stream/gather.js';
import { eventually } from '../../support/eventually.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { type ContentStage, fileAnswer, startContent } from './contents.js';

const video = Buffer.alloc(700_000, '\0\0\0\x18ftypmp42 and the rest of a video');

/** A client that reads nothing behind the first bytes until it is told to. */
async function begin({ gateway, path }: ContentStage) {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-test\r\n\r\n`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return { first, end: () => once(socket.resume(), 'close') };
}

async function isOurs(t: Test, { gateway, path }: ContentStage): Promise<void> {
  t.match(await gateway.line((line) => line.msg === 'request' && line.path === path), {
    outcome: 'refused',
    error: 'internal_error',
  });
}

test('a fault of ours in the middle of a video ends its call as our own, and cuts the connection', async (t) => {
  const { prototype } = Beginning;
  const { failureIn } = prototype;
  t.teardown(() => {
    prototype.failureIn = failureIn;
  });
  const stage = await startContent(t, ({ socket }) => socket.write(fileAnswer(video)));
  let pieces = 0;
  prototype.failureIn = () => {
    if (++pieces > 1) throw new Error('internal error');
    return null;
  };
  await t.rejects(stage.get());
  await isOurs(t, stage);
});

test('so does a kept video of which the folder has less than it had', async (t) => {
  const folder = join(temporaryFolder(t), 'videos');
  const stage = await startContent(t, ({ socket }) => socket.write(fileAnswer(video)), {
    config: { videos: { folder } },
  });
  const file = join(folder, `${stage.id}.mp4`);
  await eventually(() => existsSync(file));
  // More than the system takes for a client that does not read.
  truncateSync(file, 64 * 1024 * 1024);
  const { first, end } = await begin(stage);
  t.match(first.toString('latin1'), 'HTTP/1.1 200');
  truncateSync(file, 1000);
  await end();
  await isOurs(t, stage);
});
