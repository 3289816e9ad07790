import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { test } from 'tap';
import { readObject } from '../../src/admin/answer.js';
import { startAdmin } from '../../src/admin/listener.js';
import type { AdminRoute } from '../../src/admin/routes.js';
import { eventually } from '../support/eventually.js';

test('a client of the operators that leaves within its body is no fault of ours', async (t) => {
  const faults: unknown[] = [];
  const ends: string[] = [];
  let begun = 0;
  const route: AdminRoute = {
    method: 'POST',
    path: '/keys',
    access: 'open',
    handle: async ({ request }) => {
      begun++;
      try {
        const body = JSON.stringify(await readObject(request));
        return { status: 200, contentType: 'application/json', body };
      } catch (error) {
        ends.push(String(error));
        throw error;
      }
    },
  };
  const tokens = { token: 'the-token-of-the-operators', readToken: null, metricsToken: null };
  const admin = await startAdmin(
    { host: '127.0.0.1', port: 0 },
    () => tokens,
    [route],
    pino({ level: 'silent' }),
    (_where, fault) => faults.push(fault),
  );
  t.teardown(() => admin.close());
  const bodies = ['content-length: 10\r\n\r\n{', 'transfer-encoding: chunked\r\n\r\n5\r\n{"a"'];
  for (const [at, rest] of bodies.entries()) {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const socket = connect(admin.port, '127.0.0.1').on('error', () => {});
      await once(socket, 'connect');
      const before = { begun, ends: ends.length };
      socket.write(`POST /keys HTTP/1.1\r\nhost: x\r\n${rest}`);
      await eventually(() => begun > before.begun);
      socket[leave]();
      await eventually(() => ends.length > before.ends);
      socket.destroy();
      t.pass(`body ${at}, ${leave}`);
    }
  }
  const answer = await fetch(`http://127.0.0.1:${admin.port}/keys`, { method: 'POST', body: '{"a":1}' });
  t.same(await answer.json(), { a: 1 });
  t.same(faults, []);
});
