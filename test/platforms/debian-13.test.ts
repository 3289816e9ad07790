import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { copyCheckout, emptyFolder, installNode, run } from './nodes.js';
import { startCommand } from './running.js';
import { callAndStream, holdSession, modelNames } from './serves.js';

/** As the manual says that the newer one is put in. */
const newer = 'npm:@btc-vision/uwebsockets.js@20.57.0';
/** Parts of the suite in which WebSockets are opened, and which need no program that Debian 13 has not. */
const parts = [
  'flow/realtime',
  'flow/route-realtime',
  'e2e/responses-upstream-session',
  'e2e/realtime-rows',
  'http/sized',
];

const hasDebootstrap = spawnSync('debootstrap', ['--version']).error === undefined;
const missing =
  process.getuid?.() !== 0
    ? 'only root can make a tree of Debian 13'
    : hasDebootstrap
      ? false
      : 'debootstrap is not installed';

test('on Debian 13 with the newer uWebSockets.js, under Node 24', { skip: missing }, async (t) => {
  const folder = emptyFolder(t);
  const tree = join(folder, 'debian');
  const inside = { cwd: folder, env: { PATH: process.env.PATH } };
  // In a space of mounts of its own: nothing stays mounted when the folder is removed.
  await run(
    'unshare',
    ['--mount', 'debootstrap', '--variant=minbase', '--include=libstdc++6', 'trixie', tree],
    inside,
  );

  const node = await installNode('24.22.3');
  const gateway = join(tree, 'gateway');
  mkdirSync(gateway);
  cpSync(node.path, join(tree, 'usr/local/bin/node'));
  copyCheckout(gateway);
  const description = join(gateway, 'package.json');
  const text = readFileSync(description, 'utf8');
  writeFileSync(description, text.replace(/"uWebSockets\.js": "[^"]+"/, `"uWebSockets.js": "${newer}"`));
  await run('npm', ['install'], { cwd: gateway, env: node.env });
  await run('npm', ['run', 'pretest'], { cwd: gateway, env: node.env });
  t.ok(existsSync(join(gateway, 'node_modules/uWebSockets.js/uws_linux_x64_137.node')));

  const script = `mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin \
    HOME=/root TAP_TIMEOUT=1500 sh -c 'cd /gateway && exec "$@"' sh "$@"`;
  const enter = (...command: string[]): string[] => ['--mount', 'sh', '-c', script, tree, ...command];

  await t.test('a call, a stream, sessions and a reload', async (t) => {
    const command = enter('node', 'dist/src/main.js', 'start', '--port', '0', '--workers', '2');
    const running = await startCommand('unshare', command, inside);
    t.same(running.programs(), Array(4).fill(join(tree, 'usr/local/bin/node')), 'all on Node 24');
    t.match(await callAndStream(running), { called: /Hello/, streamed: /data: \[DONE\]/ });
    for (let session = 0; session < 5; session++)
      t.ok((await holdSession(running)).includes('response.done'));
    process.kill(running.pid, 'SIGHUP');
    t.ok((await modelNames(running)).includes('sim-text'));
    t.match(await callAndStream(running), { called: /Hello/, streamed: /data: \[DONE\]/ });
    t.equal(await running.stop(), 0);
    t.notMatch(running.lines.join('\n'), /packaged/);
    const warnings = running.lines.filter((line) => line.includes('Warning'));
    t.equal(warnings.length, 5, 'the upgrade of each session is outside cork, and nothing else is');
  });
  await t.test('the tests of sockets', async (t) => {
    const printed = await run('unshare', enter('node', 'dist/test/run.js', ...parts), inside);
    t.match(printed, /^ok /m);
  });
});
