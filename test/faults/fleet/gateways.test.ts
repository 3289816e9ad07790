import { test } from 'tap';
import { startKeysGateway } from '../../supervisor/keys-gateway.js';
import { eventually } from '../../support/eventually.js';
import { postgresFor, skipWithoutPostgres } from '../../support/postgres.js';

const hosts = 4;
/** As the manual tells them of a host with one worker. */
const mostConnections = 16;
const mostMs = 1000;
const rounds = 5;

test('four gateways on one PostgreSQL refuse a revoked key within a second', {
  skip: skipWithoutPostgres(),
  timeout: 120_000,
}, async (t) => {
  const postgres = await postgresFor(t);
  const store = { kind: 'postgres', url: postgres.url };
  const gateways = await Promise.all(
    Array.from({ length: hosts }, () => startKeysGateway(t, { workers: 1, store })),
  );
  const [first] = gateways;
  const until = (key: string, status: number): Promise<unknown> =>
    Promise.all(
      gateways.map(({ call }) => eventually(() => call(key), { fits: (answered) => answered === status })),
    );
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const by = gateways[round % hosts];
    const id = `team-${round}`;
    const made = await first?.operate('POST', '/keys', {
      id,
      groups: ['default'],
      limits: { requestsPerMinute: 100_000, concurrent: 1000 },
    });
    const key = String(made?.body.key);
    await until(key, 200);
    const since = performance.now();
    t.match(await by?.operate('DELETE', `/keys/${id}`), { status: 200 });
    await until(key, 401);
    times.push(performance.now() - since);
  }
  t.ok(
    times.every((ms) => ms < mostMs),
    `refused by all after ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`,
  );
  const connections = Number(
    postgres.query("SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"),
  );
  t.ok(connections <= hosts * mostConnections, `${connections} connections of ${hosts} hosts`);
});
