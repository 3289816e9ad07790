import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { configKey, startKeysGateway } from './keys-gateway.js';

const skip = skipWithoutPostgres();

test('two gateways on one PostgreSQL', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const store = { kind: 'postgres', url: postgres.url };
  const [here, there] = await Promise.all([
    startKeysGateway(t, { workers: 1, store }),
    startKeysGateway(t, { workers: 1, store }),
  ]);
  /** Calls the other gateway until it answers so, on all of many connections. @returns milliseconds */
  const until = async (key: string, status: number): Promise<number> => {
    const since = performance.now();
    await eventually(() => there.call(key), { fits: (answered) => answered === status });
    const took = performance.now() - since;
    t.strictSame([...(await there.calls(key, 20))], [status]);
    return took;
  };

  await t.test('what is made, rotated and revoked at one holds at the other', async (t) => {
    const { body } = await here.operate('POST', '/keys', { id: 'team', groups: ['default'] });
    const key = String(body.key);
    t.comment(`made: known to the other after ${(await until(key, 200)).toFixed(0)} ms`);
    const { key: next } = (await here.operate('POST', '/keys/team/rotate')).body;
    t.comment(`rotated: the old one refused by the other after ${(await until(key, 401)).toFixed(0)} ms`);
    await until(String(next), 200);
    t.match(await here.operate('DELETE', '/keys/team'), { status: 200, body: { inForce: true } });
    t.strictSame([...(await here.calls(String(next), 20))], [401]);
    t.comment(`revoked: refused by the other after ${(await until(String(next), 401)).toFixed(0)} ms`);
    t.match((await there.operate('GET', '/keys/team')).body, { revokedAt: /^\d{4}-/ });
  });

  await t.test('known keys outlast an outage of the store, and changes go on after it', async (t) => {
    const { body } = await here.operate('POST', '/keys', { id: 'through', groups: ['default'] });
    const key = String(body.key);
    await until(key, 200);
    await postgres.crash();
    await there.gateway.untilLogged(({ msg }) => String(msg).startsWith('cannot read the keys in the store'));
    t.strictSame([...(await there.calls(key, 20))], [200]);
    t.match(await here.operate('DELETE', '/keys/through'), {
      status: 503,
      body: { error: { code: 'store_unavailable' } },
    });
    await postgres.restart();
    await eventually(async () => (await here.operate('DELETE', '/keys/through')).status === 200);
    await until(key, 401);
  });
});

test('a gateway starts without its store, and its keys come with it', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const store = { kind: 'postgres', url: postgres.url };
  const first = await startKeysGateway(t, { workers: 1, store });
  const { body } = await first.operate('POST', '/keys', { groups: ['default'] });
  const key = String(body.key);
  await first.gateway.stop();
  await postgres.crash();
  const second = await startKeysGateway(t, { workers: 1, store });
  t.equal(await second.call(configKey), 200);
  t.equal(await second.call(key), 503);
  await postgres.restart();
  await eventually(async () => (await second.call(key)) === 200);
  await eventually(async () => (await second.call('sk-made-up')) === 401);
  await second.gateway.untilLogged(({ msg }) => msg === 'keys in the store are readable again');
  t.pass();
});
