import t, { type Test, test } from 'tap';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { sharedSecret, testConfig, testKey } from '../support/gateway-config.js';
import { noPostgres, type PostgresServer, skipWithoutPostgres, startPostgres } from '../support/postgres.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

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

/** A gateway whose database is gone when a call ends, and which was told to stop; it waits for the database. */
async function stopInOutage(t: Test): Promise<{ gateway: GatewayProcesses; server: PostgresServer }> {
  const server = (await startPostgres()) as PostgresServer;
  t.teardown(() => server.stop());
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const file = testConfig({
    upstreams: [upstream.url],
    config: { store: { kind: 'postgres', url: server.url }, secret: sharedSecret, usage: { ledger: true } },
  });
  const gateway = await startGateway(t, { workers: 1, file });
  const ask = async (): Promise<void> => {
    const response = await fetch(`${gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}` },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    });
    t.equal(response.status, 200, await response.text());
  };
  await ask();
  await server.crash();
  await ask();
  gateway.kill('SIGTERM');
  await gateway.untilLogged(({ msg }) => msg === 'waiting until the store accepts the last ledger entries');
  return { gateway, server };
}

test('a gateway that is stopped in an outage waits for the end of it, and loses no line', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const { gateway, server } = await stopInOutage(t);
  await server.restart();
  t.strictSame(await gateway.exited, { code: 0, signal: null });
  t.equal(server.query('SELECT count(*) FROM gateway.calls'), '2');
});

test('a second signal ends the wait for the store', { skip: skipWithoutPostgres() }, async (t) => {
  const { gateway } = await stopInOutage(t);
  gateway.kill('SIGTERM');
  t.strictSame(await gateway.exited, { code: 143, signal: null });
  t.ok(await gateway.untilLogged(({ msg }) => msg === 'ledger entries were lost'), 'it says so');
});

t.end();
