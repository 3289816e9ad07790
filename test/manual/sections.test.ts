import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { adminRoutes } from '../../src/admin/endpoints.js';
import { fillSections, sectionNames } from '../../src/manual/sections.js';
import { pages, root } from './pages.js';

for (const [path, text] of pages) {
  test(`what ${path} has from the code is what the code says`, async (t) => {
    t.equal(text, fillSections(text), '`npm run manual` brings it up to date');
  });
}

test('every generated section has its place, once', async (t) => {
  const all = [...pages.values()].join('');
  for (const name of sectionNames) t.equal(all.split(`<!-- generated: ${name} -->`).length, 2, name);
});

test('a marker for what nobody makes is refused', async (t) => {
  t.throws(() => fillSections('<!-- generated: nothing -->\n<!-- end of generated -->'), {
    message: 'There is no generated section "nothing".',
  });
});

test('every path of the operators is described, and no other', async (t) => {
  const [live] = [{}];
  const routes = adminRoutes({ config: {}, keys: {}, playground: {}, live } as never);
  const served = routes.map(({ method, path }) => `${method} ${path}`).sort();
  const rows = pages.get('src/manual/admin.md')?.match(/^\| `[A-Z].*$/gm) ?? [];
  const told = rows.flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, line = '']) => line),
  );
  // Its files are told of beside the page that loads them.
  t.strictSame(
    told.sort(),
    served.filter((line) => !line.startsWith('GET /console/{')),
  );
});

test('the sizes and versions that the manual names are those of package.json', async (t) => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  t.equal(engines.node, '>=20.19 <27');
  for (const path of ['README.md', 'src/manual/install.md']) t.match(pages.get(path), 'Node 20.19 to 26');
});
