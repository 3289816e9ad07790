import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { namedRivals, rivalNames, rivalsFolder } from '../../bench/contenders/rivals.js';

const read = (name: string): unknown => JSON.parse(readFileSync(join(rivalsFolder, name), 'utf8'));

test('what the bench races against on Node is pinned to the byte, and to no registry', (t) => {
  const { dependencies } = read('package.json') as { dependencies: Record<string, string> };
  for (const [name, version] of Object.entries(dependencies)) t.match(version, /^\d+\.\d+\.\d+$/, name);
  // Newer ones fail on streams.
  t.match(dependencies, { '@hono/node-server': '1.13.8', hono: '4.9.7' });
  const { packages } = read('package-lock.json') as {
    packages: Record<string, { integrity?: string; resolved?: string }>;
  };
  for (const [path, { integrity, resolved }] of Object.entries(packages)) {
    if (path === '') continue;
    t.match(integrity, /^sha512-/, path);
    t.equal(resolved, undefined, path);
  }
  const servers = Object.keys(packages).filter((path) => path.endsWith('node_modules/@hono/node-server'));
  t.same(servers, ['node_modules/@hono/node-server']);
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
