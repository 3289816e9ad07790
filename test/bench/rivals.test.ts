import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { namedRivals, rivalNames, rivalsFolder } from '../../bench/contenders/rivals.js';

const read = (name: string): unknown => JSON.parse(readFileSync(join(rivalsFolder, name), 'utf8'));

test('what the bench races against on Node is pinned to the byte, and to no registry', (t) => {
  const { dependencies } = read('package.json') as { dependencies: Record<string, string> };
  for (const [name, version] of Object.entries(dependencies)) t.match(version, /^\d+\.\d+\.\d+$/, name);
  const { packages } = read('package-lock.json') as {
    packages: Record<string, { integrity?: string; resolved?: string }>;
  };
  for (const [path, { integrity, resolved }] of Object.entries(packages)) {
    if (path === '') continue;
    t.match(integrity, /^sha512-/, path);
    t.equal(resolved, undefined, path);
  }
  t.notOk(readdirSync(rivalsFolder).includes('node_modules'), 'they are installed elsewhere');
  t.end();
});

test('nothing is installed for who does not name one of them', (t) => {
  const said: string[] = [];
  t.same(
    namedRivals(['gateway', 'nginx'], (sentence) => said.push(sentence)),
    [],
  );
  t.same(said, []);
  t.same(rivalNames, ['portkey', 'fastify', 'llms']);
  t.end();
});
