import { test } from 'tap';
import { anchorOf, pageHtml, titleOf } from '../../src/manual/html.js';
import { pages } from './pages.js';

const names = [...pages].map(([path, text]) => ({
  name: path === 'README.md' ? 'index' : path.replace(/^.*\/(.*)\.md$/, '$1'),
  title: titleOf(text),
  text,
}));
const rendered = new Map(names.map(({ name, text }) => [name, pageHtml(text, name, names)]));

test('no page has what the policy of the console refuses', async (t) => {
  for (const [name, html] of rendered) {
    t.notMatch(html, /<script|<style|<img|<iframe|\sstyle=|\son[a-z]+=/i, name);
    t.match(html, /<h1 id="/, name);
  }
});

test('every link of the help leads to a page of it, and to an anchor there', async (t) => {
  for (const [name, html] of rendered) {
    for (const [, href = ''] of html.matchAll(/<a href="([^"]*)"/g)) {
      if (href === '/' || /^https?:/.test(href)) continue;
      const [file = '', anchor = ''] = href.split('#');
      const target = rendered.get(file === '' ? name : file.replace(/\.html$/, ''));
      t.ok(target, `${name} -> ${href}`);
      if (anchor !== '') t.ok(target?.includes(` id="${anchor}"`), `${name} -> ${href}`);
    }
  }
});

test('markup in a page is text, and markers are not shown', async (t) => {
  const html = pageHtml(
    '# T\n\n<!-- generated: x -->\n\n<b onclick="x()">bold</b> `<i>` [a](b.md#c) & \n',
    'x',
    [],
  );
  t.notMatch(html, /<b\b|onclick|generated/);
  t.match(html, '<code>&lt;i&gt;</code>');
  t.match(html, '<a href="b.html#c">a</a>');
});

test('anchors are those of GitHub', async (t) => {
  t.equal(anchorOf('Answers about our own account'), 'answers-about-our-own-account');
  t.equal(anchorOf('What `x` is, and why not?'), 'what-x-is-and-why-not');
});
