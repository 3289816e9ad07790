import { execFileSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { loadConfig } from '../../src/config/load.js';
import { loadConfigApart } from '../../src/config/load-apart.js';
import { ConfigError } from '../../src/config/problem.js';
import { demoKeyHash } from '../support/demo-key.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const config = {
  secret: '$' + '{file:secret}',
  upstreams: { local: { kind: 'simulator' } },
  models: {
    m: { protocols: ['chat'], targets: [{ upstream: 'local' }], price: { input: 1, output: 2 } },
  },
  groups: { g: { models: ['*'], limits: { requestsPerMinute: 3 } } },
  keys: [{ id: 'team', hash: demoKeyHash, groups: ['g'], budget: { usd: 1, per: 'day' } }],
};

test('a config that a thread has read is the one of its file, secrets of files included', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'config.json');
  writeFileSync(join(folder, 'secret'), 'a secret of thirty-two characters\n');
  writeFileSync(path, JSON.stringify(config));
  const inOrder = ({ models, ...rest }: ReturnType<typeof loadConfig>) => ({
    ...rest,
    // When it was first known.
    models: models.map((model) => ({ ...model, created: 0 })),
  });
  const expected = inOrder(loadConfig(path, process.env));
  t.equal(expected.secret.text, 'a secret of thirty-two characters');
  const [one, other] = await Promise.all([loadConfigApart(path), loadConfigApart(path)]);
  t.strictSame(inOrder(one), expected);
  t.strictSame(inOrder(other), expected);
});

test('what is wrong with a config that a thread has read is told, and the next one is read all the same', async (t) => {
  const path = join(temporaryFolder(t), 'config.json');
  const gone = await loadConfigApart(path).catch((error: unknown) => error);
  t.ok(gone instanceof ConfigError);
  t.match(gone, { problems: [{ path: '', message: `${path} cannot be read (ENOENT)` }] });
  writeFileSync(
    path,
    JSON.stringify({ ...config, secret: undefined, keys: [{ id: 'team', groups: ['none'] }] }),
  );
  await t.rejects(loadConfigApart(path), { message: 'keys[0].hash: is required' });
});

test('a reload does not wait for a pipe in place of the file', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'config.json');
  writeFileSync(join(folder, 'secret'), 'a secret of thirty-two characters\n');
  execFileSync('mkfifo', [path]);
  await t.rejects(loadConfigApart(path), {
    message: /config\.json is a pipe or device, which only a start can read/,
  });
  writeFileSync(join(folder, 'next.json'), JSON.stringify(config));
  renameSync(join(folder, 'next.json'), path);
  t.equal((await loadConfigApart(path)).keys.length, 1);
});
