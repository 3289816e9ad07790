import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository, from `dist*` where this file runs compiled. */
export const root = fileURLToPath(new URL('../../../', import.meta.url));

const folder = 'src/manual';

/** The README and every page of the manual, by path from the root. */
export const pages: ReadonlyMap<string, string> = new Map(
  [
    'README.md',
    ...readdirSync(join(root, folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => `${folder}/${file}`),
  ].map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);

/** The code blocks of a language in a page. */
export function blocksOf(path: string, language: string): string[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm');
  return [...(pages.get(path) ?? '').matchAll(pattern)].map(([, block = '']) => block);
}

/** A page without its code. */
export function proseOf(text: string): string {
  return text
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, (all) => all.replaceAll(/[[\]]/g, ' '));
}
