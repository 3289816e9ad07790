import t, { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { sharedSecret, testConfig } from '../support/gateway-config.js';
import { noPostgres, startPostgres } from '../support/postgres.js';

test('a gateway ends although its database hangs', { timeout: 120_000 }, async (t) => {
  const server = await startPostgres();
  if (server === null) {
    t.pass(`skipped: ${noPostgres}`);
    return;
  }
  t.teardown(() => server.stop());
  const store = { kind: 'postgres', url: server.url };
  const file = testConfig({ upstreams: ['http://127.0.0.1:9/v1'], config: { store, secret: sharedSecret } });
  const gateway = await startGateway(t, { workers: 1, file });
  server.signal('SIGSTOP');
  t.teardown(() => server.signal('SIGCONT'));
  gateway.kill('SIGTERM');
  t.strictSame(await gateway.exited, { code: 0, signal: null });
  t.ok(await gateway.untilLogged((entry) => entry.msg === 'the store did not close in time'));
});

t.end();
