import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { t } from 'tap';

// What needs a registry: agents and SDKs that are not among the packages of the project, on every kind of upstream.
const wanted = process.argv.slice(2).filter((arg) => arg !== '--quick');
const options = process.argv.filter((arg) => arg === '--quick');
const files = readdirSync(import.meta.dirname).filter(
  (file) => file.endsWith('.test.js') && wanted.every((part) => file.includes(part)),
);
t.comment(`${files.length} test files`);
t.jobs = 2;
for (const file of files.sort()) {
  const args = ['-u', 'NODE_OPTIONS', 'TAP_TIMEOUT=900', process.execPath, '--enable-source-maps'];
  void t.spawn(
    'env',
    [...args, join(import.meta.dirname, file), ...options],
    { buffered: true, timeout: 900_000 },
    file,
  );
}
