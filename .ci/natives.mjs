// Compares the native binaries of uWebSockets.js with the ones that this repository knows, by platform, architecture
// and ABI of Node. After a change of version: `node .ci/natives.mjs --print > .ci/natives.sha256`, once they are trusted.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const folder = 'node_modules/uWebSockets.js';
const table = '.ci/natives.sha256';

const found = new Map(
  readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith('.node'))
    .sort()
    .map((file) => [
      basename(file),
      createHash('sha256')
        .update(readFileSync(join(folder, file)))
        .digest('hex'),
    ]),
);

if (process.argv[2] === '--print') {
  for (const [name, hash] of found) process.stdout.write(`${hash}  ${name}\n`);
} else {
  const known = new Map(
    readFileSync(table, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  const problems = [];
  for (const [name, hash] of found) {
    if (known.get(name) !== hash) problems.push(`${name} has ${hash}, known is ${known.get(name) ?? 'none'}`);
  }
  for (const name of known.keys()) if (!found.has(name)) problems.push(`${name} is missing`);
  for (const problem of problems) process.stderr.write(`${folder}: ${problem} (${table})\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
