import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { configWith } from './reloading.js';

test('the tokens of operators come from files, each is for what it is for, and a reload takes new ones', async (t) => {
  const folder = temporaryFolder(t);
  const names = ['token', 'readToken', 'metricsToken'] as const;
  const write = (round: number): void => {
    for (const name of names) writeFileSync(join(folder, name), `the-${name}-of-round-${round}\n`);
  };
  write(1);
  const of = (name: string): string => `$\{file:${join(folder, name)}}`;
  const [token, readToken, metricsToken] = names.map(of);
  const store = { kind: 'embedded', path: join(folder, 'data') };
  const admin = { port: 0, token, readToken, metricsToken };
  const gateway = await startGateway(t, { workers: 1, file: configWith({ admin, store }) });
  const url = await gateway.adminUrl();
  const ask = async (as: string, method: string, path: string, body?: object): Promise<number> => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${as}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await answer.text();
    return answer.status;
  };
  const key = { groups: ['default'] };
  const readings = [
    '/metrics',
    '/status',
    '/keys',
    '/config',
    '/usage',
    '/tasks',
    '/limits',
    '/openapi.json',
  ];
  const writings = [
    ['POST', '/reload'],
    ['POST', '/keys'],
    ['PATCH', '/keys/team'],
    ['POST', '/keys/team/rotate'],
    ['DELETE', '/keys/team'],
    ['POST', '/playground'],
  ] as const;
  for (const path of readings) t.equal(await ask('the-readToken-of-round-1', 'GET', path), 200, path);
  t.equal(await ask('the-readToken-of-round-1', 'POST', '/config/check'), 200);
  for (const [method, path] of writings) {
    t.equal(await ask('the-readToken-of-round-1', method, path, key), 403, `${method} ${path}`);
    t.equal(await ask('the-metricsToken-of-round-1', method, path, key), 403, `${method} ${path}`);
  }
  t.equal(await ask('the-metricsToken-of-round-1', 'GET', '/metrics'), 200);
  t.equal(await ask('the-metricsToken-of-round-1', 'GET', '/status'), 403);
  t.equal(await ask('the-token-of-round-1', 'POST', '/keys', { id: 'made', ...key }), 201);

  const live = (as: string) => fetch(`${url}/console/live`, { headers: { authorization: `Bearer ${as}` } });
  const watched = await live('the-readToken-of-round-1');
  t.equal(watched.status, 200);

  write(2);
  t.equal(await ask('the-token-of-round-1', 'POST', '/reload'), 200);
  for (const name of names) {
    t.equal(await ask(`the-${name}-of-round-1`, 'GET', '/metrics'), 401);
    t.equal(await ask(`the-${name}-of-round-2`, 'GET', '/metrics'), 200);
  }
  t.notOk(gateway.logs.some((line) => line.includes('only after a restart')));
  await t.rejects(watched.text(), 'who watches with a token of before is cut off');

  writeConfig(gateway.configPath ?? '', configWith({ store }));
  t.equal(await ask('the-token-of-round-2', 'POST', '/reload'), 200);
  for (const name of names) {
    t.equal(
      await ask(`the-${name}-of-round-1`, 'GET', '/metrics'),
      401,
      'what was replaced stays without use',
    );
    t.equal(
      await ask(`the-${name}-of-round-2`, 'GET', '/metrics'),
      200,
      'the last hold without admin in the file',
    );
  }
});
