import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startHttpUpstream } from '../../support/upstream.js';
import { watchFaults } from './faults.js';
import { consoleWait, noBrowser, startBrowser } from './page.js';

const policy = "default-src 'self'; script-src 'self'; connect-src *";

test('what a page may not do is noticed', { skip: noBrowser }, async (t) => {
  const script = `
    fetch('/missing').then(() => fetch('/forbidden')).then(() => {
      console.error('a complaint');
      fetch('http://127.0.0.2:9/').catch(() => {});
      document.body.innerHTML = '<img src="http://127.0.0.3:9/" alt=""><p style="color: red"></p>';
      throw new Error('a mistake');
    });`;
  const { origin } = await startHttpUpstream(t, ({ url }, answer) => {
    const [status, type, body] =
      url === '/'
        ? [
            200,
            'text/html',
            '<!doctype html><body><link rel="icon" href="data:,"><script src="/s.js"></script>',
          ]
        : url === '/s.js'
          ? [200, 'text/javascript', script]
          : [url === '/missing' ? 404 : 403, 'text/plain', ''];
    answer.writeHead(status as number, { 'content-type': `${type}`, 'content-security-policy': policy });
    answer.end(body);
  });
  const context = await (await startBrowser(t)).newContext();
  const faults = watchFaults(context, origin, [403]);
  await (await context.newPage()).goto(origin);
  for (const what of [
    /status of 404 .*\/missing$/,
    /^a complaint/,
    /^asked elsewhere: http:\/\/127\.0\.0\.2:9\/$/,
    /127\.0\.0\.3:9\/.* violates the following Content Security Policy/,
    /inline style violates the following Content Security Policy/,
    /^thrown: .*a mistake/,
  ]) {
    await eventually(() => faults.some((fault) => what.test(fault)), { what: `${what}`, ...consoleWait });
    t.pass(`${what}`);
  }
  t.notMatch(faults.join('\n'), 'status of 403', 'what was to be refused is none');
});
