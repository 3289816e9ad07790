import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'tap';
import { startServer } from './http-server.js';

/** In one of them alone, uWS may not notice that its memory is freed twice. */
const servers = 60;

test('a server that is closed while it is about to stop listening stops once', async (t) => {
  const all = await Promise.all(Array.from({ length: servers }, () => startServer(t, () => {})));
  const drained = all.map(({ server }) => server.drain(0));
  for (const { server } of all) server.close();
  await Promise.all(drained);
  for (const { port } of all) {
    const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
    if (error.code !== 'ECONNREFUSED') t.fail(`${error.code}`);
  }
  t.pass('none of them takes connections');
});

test('a server that drains twice, and is closed then, stops once', async (t) => {
  const { server, port } = await startServer(t, () => {});
  await Promise.all([server.drain(0), server.drain(0)]);
  server.close();
  const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');
});
