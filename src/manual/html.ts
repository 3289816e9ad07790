import { Marked, type Tokens } from 'marked';

/** A page of the help, as it is listed on every one of them. */
interface PageName {
  /** Without an ending: `config`. */
  readonly name: string;
  readonly title: string;
}

/** The page that the README becomes. */
export const indexPage = 'index';

/** The first heading of a page. */
export function titleOf(markdown: string): string {
  return /^# (.+)$/m.exec(markdown)?.[1] ?? '';
}

/** The anchor that GitHub gives to a heading, and the help as well: `### What it is` has `what-it-is`. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

const parser = new Marked({
  renderer: {
    heading({ tokens, depth, text }: Tokens.Heading) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    link({ tokens, href }: Tokens.Link) {
      return `<a href="${escapeHtml(helpAddress(href))}">${this.parser.parseInline(tokens)}</a>`;
    },
    table(token: Tokens.Table) {
      const cells = (tag: string, row: readonly Tokens.TableCell[]): string =>
        row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('');
      const rows = token.rows.map((row) => `<tr>${cells('td', row)}</tr>`).join('\n');
      // Wide tables scroll by themselves, with the keyboard, too.
      return `<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n<thead><tr>${cells('th', token.header)}</tr></thead>\n<tbody>\n${rows}\n</tbody></table></div>\n`;
    },
    // The markers of generated parts are the only markup in the pages; nothing of it is shown.
    html: () => '',
  },
});

/** Where a link between the Markdown files leads in the help. */
function helpAddress(href: string): string {
  const [, path = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  if (/^[a-z]+:/.test(path) || path === '') return href;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name === 'README.md' ? `${indexPage}.html${anchor}` : name.replace(/\.md$/, `.html${anchor}`);
}

/**
 * A page of the help: HTML without script or style of its own, as the console's policy wants it.
 * @param pages all pages, in the order in which they are listed
 */
export function pageHtml(markdown: string, name: string, pages: readonly PageName[]): string {
  const links = pages.map(
    (page) =>
      `<li><a href="${page.name}.html"${page.name === name ? ' aria-current="page"' : ''}>${escapeHtml(page.title)}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(titleOf(markdown))} · Gateway</title>
<link rel="stylesheet" href="help.css">
</head>
<body>
<nav aria-label="Manual"><p><a href="/">Console</a></p><ul>${links.join('')}</ul></nav>
<main>
${parser.parse(markdown, { async: false })}</main>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
