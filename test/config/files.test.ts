import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { createConfigFiles } from '../../src/config/files.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('what is no file, or has no end, holds nobody up who reads a config', (t) => {
  const folder = temporaryFolder(t);
  const at = (name: string): string => join(folder, name);
  execFileSync('mkfifo', [at('pipe')]);
  writeFileSync(at('long'), '-'.repeat(1_048_577));
  writeFileSync(at('text'), 'text\n');
  symlinkSync('text', at('link'));
  symlinkSync('pipe', at('linked-pipe'));
  const files = createConfigFiles(folder);
  for (const name of ['pipe', 'linked-pipe', '.', '/dev/zero']) {
    const problem = 'this is no file';
    t.strictSame(files.read(name), { text: null, problem }, name);
    t.strictSame(files.certificate(name), { text: null, problem }, name);
    t.strictSame(files.secret(name), { text: null, problem: `${files.absolute(name)} is no file` }, name);
  }
  t.strictSame(files.read('long'), { text: null, problem: 'the file has more than 1048576 bytes' });
  t.strictSame(files.read('link'), { text: 'text\n', problem: null });
  t.end();
});
