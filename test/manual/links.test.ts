import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'tap';
import { anchorOf } from '../../src/manual/html.js';
import { pages, proseOf, root } from './pages.js';

const anchors = new Map(
  [...pages].map(([path, text]) => [
    path,
    [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      anchorOf(heading),
    ),
  ]),
);

/** The relative links of a page: files from the root, and anchors. */
function linksOf(path: string): { readonly file: string; readonly anchor: string }[] {
  return [...proseOf(pages.get(path) ?? '').matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, href = '']) => {
    if (/^[a-z]+:/.test(href)) return [];
    const [file = '', anchor = ''] = href.split('#');
    return [{ file: file === '' ? path : normalize(join(dirname(path), file)), anchor }];
  });
}

test('every relative link leads to a file, and every anchor to a heading of it', async (t) => {
  for (const path of pages.keys()) {
    for (const { file, anchor } of linksOf(path)) {
      t.ok(existsSync(join(root, file)), `${path} -> ${file}`);
      if (anchor !== '') t.ok(anchors.get(file)?.includes(anchor), `${path} -> ${file}#${anchor}`);
    }
  }
});

test('headings of a page have anchors of their own', async (t) => {
  for (const [path, names] of anchors) t.equal(new Set(names).size, names.length, path);
});

test('the README leads to every page, and is short', async (t) => {
  const linked = new Set(linksOf('README.md').map(({ file }) => file));
  for (const path of pages.keys()) if (path !== 'README.md') t.ok(linked.has(path), path);
  t.ok((pages.get('README.md') ?? '').split('\n').length <= 301);
});
