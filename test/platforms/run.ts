import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { t } from 'tap';

// What needs a registry and minutes: other Nodes, other systems, the tree that is deployed. One after the other.
const wanted = process.argv.slice(2);
const files = readdirSync(import.meta.dirname).filter(
  (file) => file.endsWith('.test.js') && wanted.every((part) => file.includes(part)),
);
t.comment(`${files.length} test files`);
for (const file of files.sort()) {
  const args = ['-u', 'NODE_OPTIONS', 'TAP_TIMEOUT=3000', process.execPath, '--enable-source-maps'];
  void t.spawn('env', [...args, join(import.meta.dirname, file)], { timeout: 3_000_000 }, file);
}
