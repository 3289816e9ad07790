import { spawn } from 'node:child_process';
import { chownSync, existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { temporaryFolder } from './temporary-folder.js';

const program = '/usr/sbin/pgbouncer';
/** The user `nobody`, since it refuses to run as root. */
const unprivileged = 65_534;
const runAs = process.getuid?.() === 0 ? { uid: unprivileged, gid: unprivileged } : {};

/** Why tests of a pooler cannot run, or false. */
export function skipWithoutPgBouncer(): string | false {
  return !existsSync(program) && 'there is no PgBouncer (Debian: apt-get install pgbouncer)';
}

/**
 * Starts a PgBouncer in front of a server of the tests. It ends with the test.
 * @param port of the server
 * @returns its own port
 */
export async function pgBouncerFor(
  t: Test,
  port: number,
  mode: 'session' | 'transaction' | 'statement',
): Promise<number> {
  const own = await freePort();
  const folder = temporaryFolder(t);
  if (runAs.uid !== undefined) chownSync(folder, runAs.uid, runAs.gid);
  const file = join(folder, 'pgbouncer.ini');
  const settings = [
    'listen_addr = 127.0.0.1',
    `listen_port = ${own}`,
    'unix_socket_dir =',
    'auth_type = any',
  ];
  writeFileSync(
    file,
    `[databases]
postgres = host=127.0.0.1 port=${port} user=postgres
[pgbouncer]
${[...settings, `pool_mode = ${mode}`, 'default_pool_size = 40'].join('\n')}
`,
  );
  const child = spawn(program, ['-q', file], { ...runAs, stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`PgBouncer has ended with ${child.exitCode}`);
    return isReached(own);
  });
  return own;
}

function isReached(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
