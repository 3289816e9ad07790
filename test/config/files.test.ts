import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { createConfigFiles, pairProblem } from '../../src/config/files.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('what is no file, or has no end, holds nobody up who reads a config', (t) => {
  const folder = temporaryFolder(t);
  const at = (name: string): string => join(folder, name);
  execFileSync('mkfifo', [at('pipe')]);
  writeFileSync(at('long'), '-'.repeat(1_048_577));
  writeFileSync(at('text'), 'text\n');
  symlinkSync('text', at('link'));
  symlinkSync('pipe', at('linked-pipe'));
  const files = createConfigFiles(folder);
  for (const name of ['pipe', 'linked-pipe', '.', '/dev/zero']) {
    const problem = 'this is no file';
    t.strictSame(files.read(name), { text: null, problem }, name);
    t.strictSame(files.certificate(name), { text: null, problem }, name);
    t.strictSame(files.secret(name), { text: null, problem: `${files.absolute(name)} is no file` }, name);
  }
  t.strictSame(files.read('long'), { text: null, problem: 'the file has more than 1048576 bytes' });
  t.strictSame(files.read('link'), { text: 'text\n', problem: null });
  t.end();
});

test('a key that is not that of the certificate is named as such, also one of another type', (t) => {
  const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');
  const [cert, own] = ['pem', 'key'].map((kind) => readFileSync(`${fixtures}/localhost.${kind}`, 'utf8'));
  t.equal(pairProblem(cert ?? '', own ?? ''), null);
  const pem = { type: 'pkcs8', format: 'pem' } as const;
  const publicKeyEncoding = { type: 'spki', format: 'pem' } as const;
  for (const { privateKey } of [
    generateKeyPairSync('rsa', { modulusLength: 2048, privateKeyEncoding: pem, publicKeyEncoding }),
    generateKeyPairSync('ec', { namedCurve: 'prime256v1', privateKeyEncoding: pem, publicKeyEncoding }),
  ])
    t.match(pairProblem(cert ?? '', privateKey), /: the key is that of another certificate$/);
  t.end();
});
