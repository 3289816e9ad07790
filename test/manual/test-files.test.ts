import { existsSync } from 'node:fs';
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

test('each promise to clients names tests of its own', async (t) => {
  const page = pages.get('src/manual/development.md') ?? '';
  const rows = [...page.matchAll(/^\| (\d+) \| [^|]+ \| `test\/[^|]+\.test\.ts` \|$/gm)];
  t.strictSame(
    rows.map(([, item]) => Number(item)),
    Array.from({ length: 16 }, (_, index) => index + 1),
  );
});
