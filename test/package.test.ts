import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'tap';
import { root } from './manual/pages.js';

const run = promisify(execFile);

test('the package has what a gateway runs, and nothing else of the folder', async (t) => {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  const [packed] = JSON.parse(stdout) as readonly { readonly files: readonly { readonly path: string }[] }[];
  const files = packed?.files.map(({ path }) => path) ?? [];
  const needed = [
    'main.js',
    'worker.js',
    'config/load-thread.js',
    'store/embedded-thread.js',
    'simulator/main.js',
  ];
  for (const path of [
    ...needed.map((name) => `dist/src/${name}`),
    'dist/src/manual/help/index.html',
    'dist/console/index.html',
    'dist/console/main.js',
  ])
    t.ok(files.includes(path), path);
  const others = files.filter((path) => !/^dist\/(?:src|console)\//.test(path));
  t.strictSame(others.sort(), ['README.md', 'package.json']);
});
