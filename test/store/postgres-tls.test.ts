import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Test, test } from 'tap';
import type { PostgresStoreSettings } from '../../src/config/types.js';
import { postgresSettings } from '../suites/store.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';

const skip = skipWithoutPostgres();
/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');
const linkModule = new URL('../../src/store/postgres-link.js', import.meta.url).href;
/** The server reads its key by a user of its own, and wants nobody else to. */
const serverUser = 65_534;

/** Asks the server in a process of its own, since an authority is trusted from the start of one. */
const script = `
const { PostgresLink } = await import(process.argv[1]);
const link = new PostgresLink({ settings: JSON.parse(process.argv[2]), connections: 1, timeoutMs: 30000 });
const text = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
const told = await link.ask({ name: 'tls', text }, []).then(([row]) => 'tls ' + row.ssl, (error) => String(error.cause?.message));
process.stdout.write(told);
await link.close();
`;

/** @returns `tls true` or `tls false`, or why there is no connection */
async function ask(port: number, tls: PostgresStoreSettings['tls'], knowsAuthority = true): Promise<string> {
  const settings = JSON.stringify({ ...postgresSettings(port), tls });
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: knowsAuthority ? join(fixtures, 'ca.pem') : '' };
  const args = ['--input-type=module', '-e', script, linkModule, settings];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return stdout;
}

/** @returns the path of a certificate that the authority has signed for another name */
function elsewhere(t: Test): string {
  const path = join(t.testdir({}), 'elsewhere.pem');
  const signer = ['-CA', join(fixtures, 'ca.pem'), '-CAkey', join(fixtures, 'ca.key')];
  const subject = ['-subj', '/CN=db.example', '-addext', 'subjectAltName=DNS:db.example'];
  const key = ['-key', join(fixtures, 'localhost.key')];
  execFileSync('openssl', ['req', '-x509', ...signer, ...key, ...subject, '-days', '2', '-out', path], {
    stdio: 'pipe',
  });
  return path;
}

/** Starts a server of TLS that shows a certificate of the fixtures, or one that is given by its path. */
async function serverWith(t: Test, certificate: string, key: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const files = [certificate, key].map((name) => {
    const path = join(folder, basename(name));
    copyFileSync(resolve(fixtures, name), path);
    chmodSync(path, 0o600);
    if (process.getuid?.() === 0) chownSync(path, serverUser, serverUser);
    return path;
  });
  const settings = ['ssl=on', `ssl_cert_file=${files[0]}`, `ssl_key_file=${files[1]}`];
  return (await postgresFor(t, { settings })).port;
}

test('with verify-full a server is connected to whose certificate is good, and no other', {
  skip,
}, async (t) => {
  const good = await serverWith(t, 'localhost.pem', 'localhost.key');
  t.equal(await ask(good, 'verified'), 'tls true');
  t.match(await ask(good, 'verified', false), /self-signed|unable to (?:get|verify)/);
  t.match(await ask(await serverWith(t, 'expired.pem', 'localhost.key'), 'verified'), /expired/);
  t.match(await ask(await serverWith(t, elsewhere(t), 'localhost.key'), 'verified'), /altnames/);
});

test('with require any certificate will do, and with disable the connection is a plain one', {
  skip,
}, async (t) => {
  const expired = await serverWith(t, 'expired.pem', 'localhost.key');
  t.equal(await ask(expired, 'on', false), 'tls true');
  t.equal(await ask(expired, 'off', false), 'tls false');
});

test('a server without TLS gets no plain connection in its place', { skip }, async (t) => {
  const { port } = await postgresFor(t);
  for (const tls of ['verified', 'on'] as const) t.match(await ask(port, tls), /does not support SSL/, tls);
});
