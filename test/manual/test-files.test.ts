import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { pages, root } from './pages.js';

test('every test file that the manual names is there', async (t) => {
  const named = [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/`(test\/[^\s`*]*\.test\.ts)`/g)].map(([, file = '']) => ({ page, file })),
  );
  t.ok(named.length > 50, `${named.length} are named`);
  for (const { page, file } of named) t.ok(existsSync(join(root, file)), `${page}: ${file}`);
});

test('every source file that the page for developers and the list of 429s name is there', (t) => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map(
    (path) => `/src/${path}`,
  );
  const named = ['src/manual/development.md', 'src/flow/limits/admit.ts'].flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/`((?!test\/)[a-z-]+\/[a-z/-]+(?:\.tsx?)?)`/g)].map(
      ([, path = '']) => ({ page, path }),
    ),
  );
  t.ok(named.length > 100, `${named.length} are named`);
  for (const { page, path } of named) {
    const ends = [path, `${path}.ts`, `${path}.tsx`].map((each) => `/${each.replace(/\/$/, '')}`);
    t.ok(
      sources.some((source) => ends.some((end) => source.endsWith(end))),
      `${page}: ${path}`,
    );
  }
  t.end();
});

test('each promise to clients names tests of its own', async (t) => {
  const page = pages.get('src/manual/development.md') ?? '';
  const rows = [...page.matchAll(/^\| (\d+) \| [^|]+ \| `test\/[^|]+\.test\.ts` \|$/gm)];
  t.strictSame(
    rows.map(([, item]) => Number(item)),
    Array.from({ length: 16 }, (_, index) => index + 1),
  );
});
