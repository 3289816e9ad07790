import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import { test } from 'tap';
import { clientConfig } from '../../src/store/postgres-link.js';
import { claimPlace } from '../../src/supervisor/take-over.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { sharedSecret } from '../support/gateway-config.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { configWith, openStream } from './reloading.js';

test('a gateway that cannot start leaves the one on its port alone', async (t) => {
  const before = await startGateway(t, { workers: 1, file: configWith({}) });
  const args = ['--port', `${before.port}`, '--take-over'];
  // No such files.
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({ listen: { tls: { cert: 'x', key: 'y' } } }), args }),
  );
  t.match(await (await openStream(before.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
  t.notOk(before.logs.some((line) => line.includes('draining')));
});

test('a gateway whose store is damaged leaves the one on its port alone', async (t) => {
  const before = await startGateway(t, { workers: 1, file: configWith({}) });
  const path = temporaryFolder(t);
  writeFileSync(join(path, 'records'), '');
  const args = ['--port', `${before.port}`, '--take-over'];
  const file = configWith({ store: { kind: 'embedded', path } });
  await t.rejects(startGateway(t, { workers: 1, file, args }), { message: /the store cannot be used: / });
  t.match(await (await openStream(before.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
  t.notOk(before.logs.some((line) => line.includes('draining')));
});

const skip = skipWithoutPostgres();

test('a gateway leaves the one on its port alone while its PostgreSQL', { skip }, async (t) => {
  const server = await postgresFor(t);
  const before = await startGateway(t, { workers: 1, file: configWith({}) });
  const args = ['--port', `${before.port}`, '--take-over'];
  const startWith = (url: string, settings: object = {}) => {
    const file = configWith({ store: { kind: 'postgres', url, ...settings }, secret: sharedSecret });
    return startGateway(t, { workers: 1, file, args });
  };
  const serves = async () => {
    t.match(await (await openStream(before.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
    t.notOk(before.logs.some((line) => line.includes('draining')));
  };
  // Makes the tables.
  const first = await startGateway(t, {
    workers: 1,
    file: configWith({ store: { kind: 'postgres', url: server.url }, secret: sharedSecret }),
  });
  await first.stop();

  await t.test('gives it no rights', async (t) => {
    server.query('CREATE ROLE guest LOGIN');
    const starting = startWith(server.url.replace('postgres@', 'guest@'));
    await t.rejects(starting, { message: /the store cannot be used: permission denied/ });
    await serves();
  });

  await t.test('has tables of a later version', async (t) => {
    server.query('INSERT INTO gateway.migrations (number) VALUES (1000)');
    await t.rejects(startWith(server.url), { message: /the store cannot be used: .* of form 1000/ });
    server.query('DELETE FROM gateway.migrations WHERE number = 1000');
    await serves();
  });

  await t.test('brings its tables up to date', async () => {
    server.query(
      `ALTER TABLE gateway.calls DROP COLUMN characters;
DELETE FROM gateway.migrations WHERE number = (SELECT max(number) FROM gateway.migrations)`,
    );
    const reader = new Client(clientConfig(postgresSettings(server.port), 5000));
    await reader.connect();
    await reader.query('BEGIN');
    await reader.query('SELECT count(*) FROM gateway.calls');
    // Less than the statement is seen to wait.
    const starting = startWith(server.url, { timeoutMs: 3000 });
    const waiting = `SELECT count(*) FROM pg_stat_activity
WHERE query LIKE '%ADD COLUMN characters%' AND xact_start < clock_timestamp() - interval '4 s' AND pid <> pg_backend_pid()`;
    await eventually(() => server.query(waiting), { fits: (count) => count === '1' });
    await serves();
    await reader.query('COMMIT');
    await reader.end();
    const after = await starting;
    await after.untilLogged(({ msg }) => msg === 'the tables of the store are being brought up to date');
    await before.untilLogged(({ msg }) => msg === 'replaced by another gateway, draining');
    await before.exited;
  });
});

test('a port of a stranger is not taken over', async (t) => {
  const stranger = createServer().listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({}), args: ['--port', `${port}`, '--take-over'] }),
    {
      message: new RegExp(
        `127.0.0.1:${port} is in use, and not by one gateway of this user alone; it is held by process ${process.pid} \\(`,
      ),
    },
  );
});

test('a program that has only the name of a worker is taken for none whose primary has died', async (t) => {
  const folder = join(temporaryFolder(t), 'src');
  mkdirSync(folder);
  const module = join(folder, 'worker.js');
  const text =
    "require('node:net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port); });";
  writeFileSync(module, text);
  const stranger = spawn(process.execPath, [module], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => stranger.kill('SIGKILL'));
  const [line] = await once(stranger.stdout, 'data');
  const port = Number(String(line));
  await t.rejects(claimPlace('127.0.0.1', port, false), { message: /in use by another process/ });
  await t.rejects(claimPlace('127.0.0.1', port, true), { message: /not by one gateway of this user alone/ });
});

test('a port that is free is simply taken', async (t) => {
  const gateway = await startGateway(t, { workers: 1, file: configWith({}), args: ['--take-over'] });
  t.strictSame(await gateway.stop(), { code: 0, signal: null });
});
