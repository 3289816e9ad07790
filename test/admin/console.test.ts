import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';

const config = {
  admin: { port: 0, token: 'the-token-of-the-operators' },
  upstreams: { local: { kind: 'simulator' } },
  models: { m: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] } },
  groups: { default: { models: ['*'] } },
  keys: [],
};

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** What a browser may be told to load: other hosts by their scheme, or by a path that begins with two slashes. */
const elsewhere = /(?:src|href)\s*=\s*["'](?:[a-z]+:)?\/\/|url\(\s*["']?(?:https?:)?\/\/|@import/i;
async function start(t: Test): Promise<string> {
  const gateway = await startGateway(t, { workers: 1, file: config });
  const url = await gateway.adminUrl();
  return url;
}

async function checkedText(t: Test, url: string, type: string): Promise<string> {
  const answer = await fetch(url);
  t.equal(answer.status, 200, url);
  t.match(answer.headers.get('content-type'), new RegExp(`^${type}; charset=utf-8$`), url);
  t.match(
    Object.fromEntries(answer.headers),
    {
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-cache',
      etag: /^"[\w-]{43}"$/,
    },
    url,
  );
  const text = await answer.text();
  t.notMatch(text, elsewhere, url);
  t.notMatch(text, 'sourceMappingURL', url);
  return text;
}

test('the page names one script and one style sheet, which are served without a token and load nothing else', async (t) => {
  const url = await start(t);
  const html = await checkedText(t, `${url}/`, 'text/html');
  t.notMatch(html, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=/i, 'nothing that the policy refuses');
  const named = [...html.matchAll(/<(?:link rel="stylesheet"|script)[^>]*(?:href|src)="([^"]+)"/g)];
  t.strictSame(
    named.map(([, path]) => path),
    ['/console/main.css', '/console/main.js'],
  );
  await checkedText(t, `${url}/console/main.css`, 'text/css');
  await checkedText(t, `${url}/console/main.js`, 'text/javascript');
});

test('the manual is served as help, under the same policy', async (t) => {
  const url = await start(t);
  const html = await checkedText(t, `${url}/console/help/index.html`, 'text/html');
  t.match(html, '<a href="config.html">');
  t.equal(await checkedText(t, `${url}/console/help/`, 'text/html'), html, 'as the manual names it');
  t.match(await checkedText(t, `${url}/console/help/config.html`, 'text/html'), 'timeouts.connectMs');
  await checkedText(t, `${url}/console/help/help.css`, 'text/css');
  t.equal((await fetch(`${url}/console/help/config.md`)).status, 404);
});

test('a file that the browser has is not sent again', async (t) => {
  const url = await start(t);
  const first = await fetch(`${url}/console/main.js`);
  const etag = first.headers.get('etag') ?? '';
  const text = await first.text();
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await fetch(`${url}/console/main.js`, { headers: { 'if-none-match': known } });
    t.equal(again.status, 304, known);
    t.equal(again.headers.get('etag'), etag);
    t.equal(again.headers.get('cache-control'), 'no-cache');
    t.equal(await again.text(), '');
  }
  const changed = await fetch(`${url}/console/main.js`, { headers: { 'if-none-match': '"other"' } });
  t.equal(changed.status, 200);
  t.equal(await changed.text(), text);

  const head = await fetch(`${url}/console/main.js`, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(head.headers.get('etag'), etag);
  t.equal(head.headers.get('content-length'), `${Buffer.byteLength(text)}`);
  t.equal(await head.text(), '');
});

test('nothing else is served: no map, no source, nothing outside of the folder', async (t) => {
  const url = await start(t);
  for (const path of [
    '/console/main.js.map',
    '/console/main.ts',
    '/console/main.tsx',
    '/console/tsconfig.json',
    '/console/styles',
    '/console/styles/base.css',
    '/console/..%2fconsole.js',
    '/console/styles%2f..%2fmain.js',
    '/console/%2e%2e%2f%2e%2e%2f%2e%2e%2fpackage.json',
    '/console/__proto__',
    '/console/main.js%00',
  ]) {
    const answer = await fetch(`${url}${path}`);
    t.equal(answer.status, 404, path);
    t.match(await answer.json(), { error: { code: 'unknown_url' } }, path);
  }
  t.equal((await fetch(`${url}/console/`)).status, 401);
  t.equal((await fetch(`${url}/`, { method: 'POST' })).status, 401);
});
