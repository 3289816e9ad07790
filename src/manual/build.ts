import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { indexPage, pageHtml, titleOf } from './html.js';

/**
 * Renders the README and the manual for the console, beside this file. With `--write` it first puts what is made from
 * the code into the pages of the sources.
 */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = join(root, 'src', 'manual');
const output = fileURLToPath(new URL('help/', import.meta.url));

const files = readdirSync(sources)
  .filter((file) => file.endsWith('.md'))
  .sort();

if (process.argv.includes('--write')) {
  const { fillSections } = await import('./sections.js');
  for (const file of files) {
    const path = join(sources, file);
    const text = readFileSync(path, 'utf8');
    const filled = fillSections(text);
    if (filled !== text) writeFileSync(path, filled);
  }
}

const texts = new Map([
  [indexPage, readFileSync(join(root, 'README.md'), 'utf8')],
  ...files.map((file) => [file.replace(/\.md$/, ''), readFileSync(join(sources, file), 'utf8')] as const),
]);
const pages = [...texts].map(([name, text]) => ({ name, title: titleOf(text) }));
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
for (const [name, text] of texts) writeFileSync(join(output, `${name}.html`), pageHtml(text, name, pages));
writeFileSync(join(output, 'help.css'), readFileSync(join(sources, 'help.css')));
