import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'tap';

const run = promisify(execFile);

test('a file runs after one whose tests wait for nothing', async (t) => {
  const files = ['support/load/answer-reader.test.js', 'support/strict-upstream/rules.test.js'];
  const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'together.js')], {
    env: { PATH: process.env.PATH, TEST_FILES: files.join() },
  });
  const ended = stdout.match(/^ok \d+ - .*\.test\.js/gm) ?? [];
  t.same(
    ended.map((line) => line.replace(/^ok \d+ - /, '')),
    files,
  );
  t.match(stdout, /^ok \d+ - a strict chat upstream refuses what its vendor does/m);
});
