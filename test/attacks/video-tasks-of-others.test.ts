import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway, testKey } from '../support/gateway.js';
import { type ClientFormat, clientFormats, vendorjAt, vendorkAt } from '../support/media/client-formats.js';
import { ask, mateKey, mediaConfig, strangerKey } from '../support/media/gateway.js';
import { ended, make, onlyClientsAsk, simulated, startVideos } from '../support/media/videos.js';
import { simulate } from '../support/simulator.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** Every way to ask how a task stands. */
const readers: readonly ClientFormat[] = [
  ...clientFormats,
  vendorkAt('/vendork/v1/videos/image2video'),
  vendorkAt('/kling/v1/videos/text2video'),
  vendorjAt('/jimeng/'),
];

/** Every way to get at the bytes. */
const contents = [
  { method: 'GET', headers: {} },
  { method: 'HEAD', headers: {} },
  { method: 'GET', headers: { range: 'bytes=0-9' } },
  { method: 'GET', headers: { range: 'bytes=-1' } },
] as const;

async function seesNothing(t: Test, gateway: { readonly url: string }, id: string, key: string) {
  const absent = `video_${'0'.repeat(32)}`;
  for (const reader of readers) {
    const seen = await reader.show(gateway, id, { key });
    t.equal(seen.state, 'missing', `${reader.format} shows nothing to ${key}`);
    const none = await reader.show(gateway, absent, { key });
    const words = (text: string) => text.replace(/(req_|"time_elapsed":")[^"]*/g, '').replaceAll(id, absent);
    t.equal(words(seen.heard.text), words(none.heard.text), 'as if there were no such task');
  }
  for (const variant of ['', '?variant=thumbnail']) {
    for (const { method, headers } of contents) {
      const path = `/v1/videos/${id}/content${variant}`;
      const heard = await ask(gateway, method, path, { key, headers });
      t.equal(heard.status, 404, `${method} ${path} ${JSON.stringify(headers)}`);
    }
    const tag = `"${id}-${variant === '' ? 'video' : 'thumbnail'}"`;
    const path = `/v1/videos/${id}/content${variant}`;
    const cached = await ask(gateway, 'GET', path, { key, headers: { 'if-none-match': tag } });
    t.equal(cached.status, 404, 'nor is it told by a tag that is known');
  }
}

test('a key of the same group that guesses the id of a task gets 404, by every path and format', async (t) => {
  const { gateway } = await startVideos(t);
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, gateway, clientFormat.format, '[[video:bytes=1000]] a fox');
    await ended(clientFormat, gateway, id);
    await seesNothing(t, gateway, id, mateKey);
    await seesNothing(t, gateway, id, strangerKey);
    for (const reader of readers) t.equal((await reader.show(gateway, id)).state, 'completed');
    const own = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.equal(own.bytes.length, 1000);
  }
});

test('a task under way is as invisible, and asking for it reaches no upstream', async (t) => {
  onlyClientsAsk(t);
  const { gateway, simulator } = await startVideos(t, { pace: { queuedMs: 60_000, runningMs: 60_000 } });
  const [clientFormat] = clientFormats;
  if (clientFormat === undefined) throw new Error('no client format');
  const id = await make(clientFormat, gateway, 'compat', 'a fox');
  const before = simulator.lastRequest()?.target;
  await seesNothing(t, gateway, id, mateKey);
  t.equal(simulator.lastRequest()?.target, before);
});

test('a group that shares its tasks opens them to its own keys alone', async (t) => {
  const config = {
    groups: {
      default: { models: ['*'], shareVideos: true },
      strangers: { models: ['*'], shareVideos: true },
    },
  };
  const { gateway } = await startVideos(t, { config });
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, gateway, clientFormat.format, '[[video:bytes=1000]] a fox');
    await ended(clientFormat, gateway, id);
    for (const reader of readers)
      t.equal((await reader.show(gateway, id, { key: mateKey })).state, 'completed');
    const heard = await ask(gateway, 'GET', `/v1/videos/${id}/content`, { key: mateKey });
    t.equal(heard.bytes.length, 1000);
    await seesNothing(t, gateway, id, strangerKey);
  }
});

test('sharing one of two groups opens nothing to the keys of the other', async (t) => {
  const keys = [
    { id: 'test', hash: hashKey(testKey), groups: ['default', 'open'] },
    { id: 'mate', hash: hashKey(mateKey), groups: ['default'] },
    { id: 'stranger', hash: hashKey(strangerKey), groups: ['open'] },
  ];
  const groups = { default: { models: ['*'] }, open: { models: ['*'], shareVideos: true } };
  const { gateway } = await startVideos(t, { config: { keys, groups } });
  const [clientFormat] = clientFormats;
  if (clientFormat === undefined) throw new Error('no client format');
  const id = await make(clientFormat, gateway, 'compat', 'a fox');
  await ended(clientFormat, gateway, id);
  await seesNothing(t, gateway, id, mateKey);
  t.equal((await clientFormat.show(gateway, id, { key: strangerKey })).state, 'completed');
});

test('a rotated key keeps its tasks, and what has its old secret and another id does not get them', async (t) => {
  const simulator = await simulate(t, { videoPace: { queuedMs: 0, runningMs: 0 } });
  const storePath = temporaryFolder(t);
  const before = await startGateway(t, { config: mediaConfig(t, { ...simulated(simulator), storePath }) });
  const ids: string[] = [];
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, before, clientFormat.format, 'a fox');
    await ended(clientFormat, before, id);
    ids.push(id);
  }
  const keys = [
    { id: 'test', hash: hashKey('sk-rotated'), groups: ['strangers'] },
    { id: 'other', hash: hashKey(testKey), groups: ['default'] },
  ];
  const after = await startGateway(t, {
    config: mediaConfig(t, { ...simulated(simulator), storePath, config: { keys } }),
  });
  for (const id of ids) {
    for (const reader of readers)
      t.equal((await reader.show(after, id, { key: 'sk-rotated' })).state, 'completed');
    await seesNothing(t, after, id, testKey);
  }
});
