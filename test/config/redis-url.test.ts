import { test } from 'tap';
import { parseRedisUrl } from '../../src/config/store-settings.js';

const plain = { host: 'a', port: 6379, tls: false, username: null, password: null, database: 0 };

test('an address is read with what it leaves out', async (t) => {
  t.strictSame(parseRedisUrl('redis://a'), plain);
  t.strictSame(parseRedisUrl('REDIS://a/'), plain);
  t.strictSame(parseRedisUrl('redis://a:7000/15'), { ...plain, port: 7000, database: 15 });
  t.strictSame(parseRedisUrl('rediss://u:p%40%3A@[::1]'), {
    ...plain,
    host: '::1',
    tls: true,
    username: 'u',
    password: 'p@:',
  });
  t.strictSame(parseRedisUrl('redis://:p@a'), { ...plain, password: 'p' });
});

test('what is no address is told without repeating it', async (t) => {
  for (const [url, problem] of [
    ['', 'must be a redis:// or rediss:// URL'],
    ['a:6379', 'must be a redis:// or rediss:// URL'],
    ['redis://a b', 'must be a redis:// or rediss:// URL'],
    ['redis://a:99999', 'is not a valid URL'],
    ['redis://:%zz@a', 'is not a valid URL'],
    ['redis:///1', 'names no host'],
    ['redis://a/1?x=1', 'may not hold a query'],
    ['redis://a#1', 'may not hold a fragment'],
    ['redis://a/one', 'may have no path but the number of a database'],
    ['redis://a/1/2', 'may have no path but the number of a database'],
  ] as const) {
    t.strictSame(parseRedisUrl(url), { problem }, url);
  }
});
