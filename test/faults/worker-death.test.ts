import { createServer, type Server } from 'node:net';
import t, { test } from 'tap';
import { workerDeath } from '../stress/worker-death.js';
import { eventually } from '../support/eventually.js';
import { killProcess, startProcesses } from '../support/gateway-processes.js';

test('a worker killed under load costs what it was serving, and nothing on the other worker', async (t) => {
  const figures = await workerDeath({ connections: 8, seconds: 0.5 });
  t.ok(figures.failuresOnVictim <= figures.onVictim, `${figures.failuresOnVictim} of ${figures.onVictim}`);
  t.equal(figures.failuresOnSurvivor, 0);
  t.equal(figures.failuresAfterwards, 0);
  t.ok(figures.answers > 0);
});

test('a worker whose port another process has taken says so in a line, until it may have it again', async (t) => {
  const gateway = await startProcesses(t, { workers: 1 });
  const [worker = 0] = gateway.workerPids();
  // It must not start another before the port is taken.
  gateway.kill('SIGSTOP');
  killProcess(worker);
  const other = await eventually(() => listenOn(gateway.port), { what: 'a free port', everyMs: 5 });
  gateway.kill('SIGCONT');
  const { err, reason } = await gateway.untilLogged(
    ({ role, level }) => role === 'worker' && level === 'fatal',
  );
  t.equal(err, undefined, 'no stack');
  t.match(reason, `127.0.0.1:${gateway.port} cannot be listened on; another process has it`);
  other.close();
  await gateway.until(() => gateway.workerPids().some((pid) => pid !== worker));
});

/** @returns null while somebody else listens there */
function listenOn(port: number): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

t.end();
