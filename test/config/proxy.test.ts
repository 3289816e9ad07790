import { test } from 'tap';
import { parseProxyUrl, resolveProxy } from '../../src/config/proxy.js';

test('a proxy is known by its URL', async (t) => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const cases = [
    ['http://proxy.example:3128', false, 'proxy.example', 3128, null],
    ['HTTP://Proxy.example/', false, 'proxy.example', 80, null],
    ['https://proxy.example', true, 'proxy.example', 443, null],
    ['http://[fd00::1]:8080', false, 'fd00::1', 8080, null],
    ['http://user:pass@proxy.example', false, 'proxy.example', 80, basic('user:pass')],
    ['http://user@proxy.example', false, 'proxy.example', 80, basic('user:')],
    ['http://:pass@proxy.example', false, 'proxy.example', 80, basic(':pass')],
    [
      'http://us%40er:p%3A%2F%C3%BC%0D%0A@proxy.example',
      false,
      'proxy.example',
      80,
      basic('us@er:p:/\u00fc\r\n'),
    ],
  ] as const;
  for (const [url, secure, host, port, authorization] of cases)
    t.strictSame(parseProxyUrl(url), { secure, host, port, authorization }, url);
});

test('what names a proxy in metrics and lists of connections holds no credential', async (t) => {
  const proxy = resolveProxy('http://user:secret-word@proxy.example:3128', null);
  t.notMatch(proxy?.identity, /user|secret/);
  t.notOk(proxy?.identity.includes(proxy.authorization?.slice('Basic '.length) ?? ''));
  t.equal(resolveProxy('http://proxy.example', 'a CA')?.ca, null, 'which a plain proxy has no use for');
});
