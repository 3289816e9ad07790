import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { t } from 'tap';

// What needs a registry: agents and SDKs that are not among the packages of the project, on every kind of upstream.
const isOption = (arg: string) => arg === '--quick' || arg.startsWith('--agent=');
const wanted = process.argv.slice(2).filter((arg) => !isOption(arg));
const options = process.argv.filter(isOption);
const files = readdirSync(import.meta.dirname).filter(
  (file) => file.endsWith('.test.js') && wanted.every((part) => file.includes(part)),
);
t.comment(`${files.length} test files`);
t.jobs = 2;
/** All cells of all agents take a quarter of an hour where nothing else runs. */
const seconds = options.includes('--quick') ? 900 : 1800;
for (const file of files.sort()) {
  const args = ['-u', 'NODE_OPTIONS', `TAP_TIMEOUT=${seconds}`, process.execPath, '--enable-source-maps'];
  void t.spawn(
    'env',
    [...args, join(import.meta.dirname, file), ...options],
    { buffered: true, timeout: seconds * 1000 },
    file,
  );
}
