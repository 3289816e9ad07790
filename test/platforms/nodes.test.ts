import { fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { copyCheckout, emptyFolder, type InstalledNode, installNode, nodes, root, run } from './nodes.js';
import { startCommand } from './running.js';
import { callAndStream, getFiles, holdSession, modelNames } from './serves.js';

const anyPort = ['--port', '0', '--workers', '2'];

/** A config whose models all go to the simulator. */
function configOf(models: readonly string[]): string {
  const target = { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] };
  return JSON.stringify({
    listen: { host: '127.0.0.1' },
    store: { kind: 'embedded', path: './data' },
    upstreams: { local: { kind: 'simulator' } },
    models: Object.fromEntries(models.map((name) => [name, target])),
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'demo', hash: demoKeyHash, groups: ['default'] }],
  });
}

/** What is said where the packaged Node runs, and which program that is. */
function expectedOf(node: InstalledNode, folder: string): { program: string; said: string | null } {
  const [major, minor] = node.version.split('.');
  if (major === '20' || major === '22') return { program: node.path, said: null };
  const packaged = join(folder, 'node_modules', `node-linux-${process.arch}`);
  const { version } = JSON.parse(readFileSync(join(packaged, 'package.json'), 'utf8')) as { version: string };
  return {
    program: join(packaged, 'bin', 'node'),
    said: `Node ${major}.${minor} has no uWebSockets.js here: running on the packaged Node ${version.split('.').slice(0, 2).join('.')}`,
  };
}

async function startsAsDemo(t: Test, node: InstalledNode, folder: string): Promise<void> {
  const { program, said } = expectedOf(node, folder);
  const gateway = await startCommand('npm', ['start', '--', ...anyPort], { cwd: folder, env: node.env });
  await gateway.until(() => gateway.lines.some((line) => line.includes('curl ')));
  t.equal(
    gateway.lines.includes(`${said}.`),
    said !== null,
    'the banner names the packaged Node where it runs',
  );
  t.same(gateway.programs(), Array(4).fill(program), 'primary, workers and simulator run on the same Node');
  const { called, streamed } = await callAndStream(gateway);
  t.match(called, /Hello/);
  t.match(streamed, /data: \[DONE\]/);
  t.ok((await holdSession(gateway)).includes('response.done'), 'a realtime session');
  t.equal(await gateway.stop(), 0);
  t.notMatch(gateway.lines.join('\n'), /Warning(?!: uWS)/, 'Node warns of nothing');
}

async function reloads(t: Test, node: InstalledNode, folder: string): Promise<void> {
  // The demo before has made this folder for its store; tools look at the others.
  const config = join(folder, 'data', 'gateway.json');
  writeFileSync(config, configOf(['sim-text']));
  const args = ['start', '--', '--config', config, ...anyPort];
  const gateway = await startCommand('npm', args, { cwd: folder, env: node.env });
  const stream = callAndStream(gateway);
  writeFileSync(config, configOf(['sim-text', 'another']));
  process.kill(gateway.pid, 'SIGHUP');
  await eventually(async () => (await modelNames(gateway)).includes('another'));
  t.match((await stream).streamed, /data: \[DONE\]/, 'a stream goes on over a reload');
  t.match(await callAndStream(gateway), { called: /Hello/ });
  t.equal(await gateway.stop(), 0);
}

/** A parent with a channel gets a process that stands in for the packaged Node's. */
async function startsForked(t: Test, node: InstalledNode, folder: string): Promise<void> {
  const child = fork(join(folder, 'dist/src/main.js'), ['start', ...anyPort], {
    cwd: folder,
    env: node.env,
    execPath: node.path,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [report] = await once(child, 'message');
  t.match(report, { type: 'listening' });
  child.kill('SIGTERM');
  t.same(await once(child, 'exit'), [0, null]);
}

async function servesPruned(t: Test, node: InstalledNode, folder: string): Promise<void> {
  const options = { cwd: folder, env: node.env };
  await run('npm', ['run', 'build'], options);
  await run('npm', ['prune', '--omit=dev'], options);
  t.notOk(existsSync(join(folder, 'node_modules', 'typescript')));
  const built = statSync(join(folder, 'dist/src/main.js')).mtimeMs;
  for (const [command, args] of [
    ['node', ['dist/src/main.js', 'start', ...anyPort]],
    ['npm', ['start', '--', ...anyPort]],
  ] as const) {
    const gateway = await startCommand(command, args, options);
    await gateway.until(() => gateway.lines.some((line) => line.includes('curl ')));
    t.match(await callAndStream(gateway), { called: /Hello/, streamed: /data: \[DONE\]/ });
    for (const [name, size] of Object.entries(await getFiles(gateway))) t.ok(size > 100, `${name}: ${size}`);
    t.equal(await gateway.stop(), 0, `${command} ${args.join(' ')}`);
  }
  t.equal(statSync(join(folder, 'dist/src/main.js')).mtimeMs, built, 'nothing was compiled');
}

/** The size in the manual is what is there, give or take a tenth. */
async function hasItsSize(t: Test, folder: string): Promise<void> {
  const manual = readFileSync(join(root, 'src/manual/install.md'), 'utf8');
  const [, stated] = /`du -sm node_modules` (\d+)/.exec(manual) ?? [];
  const printed = await run('du', ['-sm', 'node_modules'], { cwd: folder, env: process.env });
  const size = Number.parseInt(printed, 10);
  t.ok(Math.abs(size - Number(stated)) < size / 10, `the manual says ${stated} MB, there are ${size}`);
}

/** Those that the command line names, `26` say; all where it names none. */
const wanted = process.argv.slice(2);
const versions = Object.keys(nodes) as (keyof typeof nodes)[];
for (const version of versions) {
  if (wanted.length > 0 && !wanted.some((start) => version.startsWith(start))) continue;
  test(`in an empty folder on Node ${version}`, async (t) => {
    const node = await installNode(version);
    const folder = emptyFolder(t);
    const options = { cwd: folder, env: node.env };
    copyCheckout(folder);
    await run('npm', ['ci'], options);

    await t.test('scripts run on the Node of who calls them', async (t) => {
      const printed = await run('npm', ['exec', '-c', 'node -p process.version && npm -v'], options);
      t.match(printed, `v${version}\n${nodes[version]}`);
      t.notOk(existsSync(join(folder, 'node_modules/.bin/node')));
    });
    await t.test('npm start: a call, a stream, a session', (t) => startsAsDemo(t, node, folder));
    await t.test('npm start does not compile again what is current', async (t) => {
      const built = statSync(join(folder, 'dist/src/main.js')).mtimeMs;
      await t.test('a reload', (t) => reloads(t, node, folder));
      t.equal(statSync(join(folder, 'dist/src/main.js')).mtimeMs, built);
    });
    await t.test('a process that was forked', (t) => startsForked(t, node, folder));
    await t.test('npm run test:full', async (t) => {
      const printed = await run(
        'npm',
        ['run', 'test:full', '--', '--reporter=tap', '--test-arg=http/', '--test-arg=main.test'],
        options,
      );
      t.match(printed, /^# \{ total: [1-9]\d*, pass: [1-9]\d*/m);
      t.notMatch(printed, /^ *not ok/m);
      const { said } = expectedOf(node, folder);
      if (said !== null) t.match(printed, said);
    });
    if (version.startsWith('20') || version.startsWith('26')) {
      await t.test('npm run check, and what it says of a binary that was changed', async (t) => {
        await run('npm', ['run', 'check'], options);
        const name = 'uws_linux_arm64_108.node';
        appendFileSync(join(folder, 'node_modules/uWebSockets.js/dist/bin', name), 'x');
        await t.rejects(run('node', ['.ci/natives.mjs'], options), { message: new RegExp(`${name} has`) });
      });
      await t.test('the tree without what is for development', (t) => servesPruned(t, node, folder));
      await t.test('its size', (t) => hasItsSize(t, folder));
    }
  });
}
