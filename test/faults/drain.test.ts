import { setTimeout as pause } from 'node:timers/promises';
import t, { test } from 'tap';
import { drain } from '../stress/drain.js';
import { onStage } from '../stress/stage.js';
import { type ClientConnection, openConnection } from '../support/load/connection.js';
import { loadRequest } from '../support/load/request.js';

test('SIGTERM under load fails no request, lets open streams end, and exits with 0', async (t) => {
  const figures = await drain({
    workers: 2,
    busy: 6,
    pausing: 6,
    streams: 4,
    streamSeconds: 1,
    seconds: 0.5,
  });
  t.strictSame(figures.failures, []);
  t.ok(figures.answers > 0);
  t.equal(figures.streamsWhole, 4);
  t.strictSame(figures.exit, { code: 0, signal: null });
});

test('no client is told to leave as long as a worker that is to end still listens', async (t) => {
  await onStage({ workers: 2 }, async ({ gateway }) => {
    const quick = loadRequest({ does: 'complete' });
    const connections = new Map<string, ClientConnection>();
    while (connections.size < 2) {
      const connection = await openConnection(gateway.port);
      const { worker } = await connection.ask(quick);
      if (connections.has(worker)) connection.close();
      else connections.set(worker, connection);
    }
    const [slow = 0] = gateway.workerPids();
    process.kill(slow, 'SIGSTOP');
    let stands = true;
    gateway.kill('SIGTERM');
    // Which of them is on the worker that stands is not known, and the other one goes on.
    const asking = [...connections.values()].map(async (connection) => {
      while (connection.usable) {
        await connection.ask(quick);
        if (!connection.usable) t.equal(stands, false, 'told to leave once both have ceased to listen');
      }
    });
    await pause(500);
    stands = false;
    process.kill(slow, 'SIGCONT');
    await Promise.all(asking);
    t.strictSame(await gateway.exited, { code: 0, signal: null });
  });
});

t.end();
