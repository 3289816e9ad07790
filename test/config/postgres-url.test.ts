import { test } from 'tap';
import { parsePostgresUrl } from '../../src/config/store-settings.js';

const plain = { host: 'a', port: 5432, others: [], database: 'u', username: 'u', password: null, tls: 'off' };

test('an address is read with what it leaves out', async (t) => {
  t.strictSame(parsePostgresUrl('postgres://u@a'), plain);
  t.strictSame(parsePostgresUrl('POSTGRESQL://u@a/'), plain);
  t.strictSame(parsePostgresUrl('postgres://u@a:80/d'), { ...plain, port: 80, database: 'd' });
  t.strictSame(parsePostgresUrl('postgres://u@a:7000/d%20e'), { ...plain, port: 7000, database: 'd e' });
  t.strictSame(parsePostgresUrl('postgres://u:p%40%3A@[::1]/d?sslmode=require'), {
    ...plain,
    host: '::1',
    database: 'd',
    password: 'p@:',
    tls: 'on',
  });
  t.strictSame(parsePostgresUrl('postgres://u@a?sslmode=verify-full'), { ...plain, tls: 'verified' });
  t.strictSame(parsePostgresUrl('postgres://u@/d?host=/run/postgresql'), {
    ...plain,
    host: '/run/postgresql',
    database: 'd',
  });
});

test('several hosts are read in their order', async (t) => {
  t.strictSame(parsePostgresUrl('postgres://u@a:7,b,[::1]:80/d?target_session_attrs=read-write'), {
    ...plain,
    port: 7,
    others: [
      { host: 'b', port: 5432 },
      { host: '::1', port: 80 },
    ],
    database: 'd',
  });
});

/** What most often makes an address none is a password. */
const invalidUrl =
  'is not a valid URL; write what is no letter or digit of a password as "%" and two hex digits';

test('what is no address is told without repeating it', async (t) => {
  for (const [url, problem] of [
    ['', 'must be a postgres:// URL'],
    ['u@a:5432', 'must be a postgres:// URL'],
    ['postgres://u@a b', 'must be a postgres:// URL'],
    ['postgres://u@a:99999', invalidUrl],
    ['postgres://u:%zz@a', invalidUrl],
    ['postgres://u:p/w@a', invalidUrl],
    ['postgres://a/d', 'names no user'],
    ['postgres://u@a/d/e', 'may have no path but the name of a database'],
    ['postgres://u@a#1', 'may not hold a fragment'],
    ['postgres://u@a?sslmode=prefer', 'must have an sslmode of disable, require, verify-full'],
    ['postgres://u@a?x=1', 'may hold no parameters but sslmode, host and target_session_attrs'],
    ['postgres://u@a?target_session_attrs=any', 'may have no target_session_attrs but read-write'],
    ['postgres://u@a,b?host=/run', 'may not name a socket beside several hosts'],
    ['postgres://u@a,', 'is not a valid URL'],
    ['postgres://u@a,b:x', 'is not a valid URL'],
    ['postgres://u@a?host=b', 'may name as host the folder of a socket alone'],
  ] as const) {
    t.strictSame(parsePostgresUrl(url), { problem }, url);
  }
});
