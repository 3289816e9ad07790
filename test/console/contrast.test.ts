import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const folder = join(root, 'src/console/styles');
const css = readFileSync(join(folder, 'base.css'), 'utf8');

type Theme = 'light' | 'dark';

/** The colours of the page by their names, in both themes. */
const tokens = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light, dark }] as const,
  ),
);

function colour(name: string, theme: Theme): string {
  const token = tokens.get(name);
  if (token === undefined) throw new Error(`no token --${name}`);
  return token[theme];
}

/** Relative luminance (WCAG 2.2). */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(first: string, second: string): number {
  const [dark = 0, light = 0] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const grounds = ['bg', 'surface', 'surface-2'];

/** What is read, on what it stands on: 4.5:1 (success criterion 1.4.3). */
const texts: readonly (readonly [text: string, ground: string])[] = [
  ...['text', 'muted', 'accent', 'good', 'warn', 'bad'].flatMap((text) =>
    grounds.map((ground) => [text, ground] as const),
  ),
  ['accent-text', 'accent'],
  ['accent', 'accent-soft'],
  ['text', 'accent-soft'],
  ['good', 'good-soft'],
  ['warn', 'warn-soft'],
  ['bad', 'bad-soft'],
  ['text', 'bad-soft'],
  // Names, texts and numbers of the config.
  ...[1, 3, 4].map((number) => [`series-${number}`, 'surface-2'] as const),
];

/** The edges of controls, the ring of the focus, the lines of charts: 3:1 (success criterion 1.4.11). */
const marks: readonly (readonly [mark: string, ground: string])[] = [
  ...['border-strong', 'accent'].flatMap((mark) => grounds.map((ground) => [mark, ground] as const)),
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((number) => [`series-${number}`, 'surface'] as const),
];

test('the contrast of black on white is what WCAG says', async (t) => {
  t.equal(contrast('#000000', '#ffffff'), 21);
  t.ok(Math.abs(contrast('#777777', '#ffffff') - 4.48) < 0.01);
});

for (const theme of ['light', 'dark'] as const) {
  test(`every text can be read in the ${theme} theme`, async (t) => {
    for (const [text, ground] of texts) {
      const ratio = contrast(colour(text, theme), colour(ground, theme));
      t.ok(ratio >= 4.5, `--${text} on --${ground}: ${ratio.toFixed(2)}`);
    }
  });

  test(`edges, rings and lines can be seen in the ${theme} theme`, async (t) => {
    for (const [mark, ground] of marks) {
      const ratio = contrast(colour(mark, theme), colour(ground, theme));
      t.ok(ratio >= 3, `--${mark} on --${ground}: ${ratio.toFixed(2)}`);
    }
  });
}

test('every token that a rule uses is defined', async (t) => {
  const sheets = readdirSync(folder).filter((name) => name.endsWith('.css'));
  const text = sheets.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  const defined = new Set([...text.matchAll(/(--[\w-]+):/g)].map(([, name]) => name));
  for (const [, name] of text.matchAll(/var\((--[\w-]+)/g)) {
    if (!defined.has(name)) t.fail(`${name} is not defined`);
  }
  t.ok(sheets.includes('base.css'));
});

test('colours are written as tokens only, so that both themes have them', async (t) => {
  const sheets = ['base', 'forms', 'shell', 'watch', 'manage', 'usage', 'config'].map(
    (name) => `${name}.css`,
  );
  for (const name of sheets) {
    const text = readFileSync(join(folder, name), 'utf8');
    const rules = text.split('\n').filter((line) => !line.trimStart().startsWith('--'));
    t.notMatch(rules.join('\n'), /: [^;]*#[0-9a-f]{3,8}\b/i, name);
  }
});
