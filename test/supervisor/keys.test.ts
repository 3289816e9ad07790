import { join } from 'node:path';
import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { configKey, type KeysGateway, startKeysGateway } from './keys-gateway.js';

const embedded = (t: Test) => ({ kind: 'embedded', path: join(t.testdir(), 'data') });

/** Makes a key. */
async function make({ operate }: KeysGateway, id: string): Promise<string> {
  const { status, body } = await operate('POST', '/keys', { id, groups: ['default'] });
  if (status !== 201 || body.inForce !== true) throw new Error(JSON.stringify(body));
  return String(body.key);
}

test('a gateway with four workers', async (t) => {
  const started = await startKeysGateway(t, { workers: 4, store: embedded(t) });
  const { gateway, operate, calls, callEveryWorker } = started;

  await t.test('a key that is made lets in at every worker', async (t) => {
    t.strictSame([...(await calls('sk-made-up', 10))], [401]);
    await callEveryWorker(t, await make(started, 'first'), 'first');
  });

  await t.test('a key that is rotated works beside its successor for a while, or not at all', async (t) => {
    const before = await make(started, 'turned');
    const { body } = await operate('POST', '/keys/turned/rotate', { graceMs: 600_000 });
    t.match(body, { formerKeys: 1, inForce: true });
    const after = String(body.key);
    t.strictSame([...(await calls(before, 20)), ...(await calls(after, 20))], [200, 200]);
    const last = String((await operate('POST', '/keys/turned/rotate')).body.key);
    t.strictSame([...(await calls(before, 20)), ...(await calls(after, 20))], [401, 401]);
    t.strictSame([...(await calls(last, 20))], [200]);
  });

  await t.test('a key that is revoked is refused by every worker from the answer on', async (t) => {
    for (let round = 0; round < 5; round++) {
      const key = await make(started, `gone-${round}`);
      t.strictSame([...(await calls(key, 20))], [200]);
      t.match(await operate('DELETE', `/keys/gone-${round}`), { status: 200, body: { inForce: true } });
      t.strictSame([...(await calls(key, 40))], [401]);
    }
  });

  await t.test('a key is changed at every worker: its groups, its end', async (t) => {
    const key = await make(started, 'changed');
    // Still to come when the order to change it arrives.
    const expiresAt = new Date(Date.now() + 4000).toISOString();
    t.match((await operate('PATCH', '/keys/changed', { expiresAt })).body, { expiresAt, inForce: true });
    await eventually(async () => (await started.call(key)) !== 200);
    t.strictSame([...(await calls(key, 20))], [401]);
  });

  await t.test('its limits hold over all workers, and change with it', async (t) => {
    const limits = { requestsPerMinute: 3 };
    const { body } = await operate('POST', '/keys', { id: 'limited', groups: ['default'], limits });
    const key = String(body.key);
    const accepted = async (): Promise<number> => {
      let count = 0;
      for (let i = 0; i < 12; i++) if ((await started.chat(key)) === 200) count++;
      return count;
    };
    t.equal(await accepted(), 3);
    await operate('PATCH', '/keys/limited', { limits: { requestsPerMinute: 5 } });
    t.equal(await accepted(), 2);
    await operate('PATCH', '/keys/limited', { limits: null });
    t.equal(await accepted(), 12);
  });

  await t.test('a worker that is started anew knows the keys, and that they are revoked', async (t) => {
    const key = await make(started, 'kept');
    const gone = await make(started, 'lost');
    await operate('DELETE', '/keys/lost');
    const [killed = 0] = gateway.workerPids();
    process.kill(killed, 'SIGKILL');
    await gateway.until(() => gateway.workerPids().length === 4 && !gateway.workerPids().includes(killed));
    await callEveryWorker(t, key, 'kept');
    t.strictSame([...(await calls(gone, 40))], [401]);
  });

  await t.test('keys made and revoked while workers die and start count from the answer on', async (t) => {
    let deaths = 0;
    let isOver = false;
    const killer = (async () => {
      for (; deaths < 6; deaths++) {
        const pids = gateway.workerPids();
        process.kill(pids[deaths % pids.length] as number, 'SIGKILL');
        await gateway.until(
          () => gateway.workerPids().length === 4 && gateway.workerPids().join() !== pids.join(),
        );
      }
      isOver = true;
    })();
    /** Of calls that no dying worker took with it. */
    const answers = async (key: string): Promise<readonly number[]> => {
      const all = await Promise.allSettled(Array.from({ length: 12 }, () => started.call(key)));
      return all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    };
    const wrong: string[] = [];
    const look = async (id: string, key: string, expected: number): Promise<void> => {
      const strange = (await answers(key)).filter((status) => status !== expected);
      if (strange.length > 0) wrong.push(`${id}: ${strange} in place of ${expected}`);
    };
    let rounds = 0;
    const keys: [string, string][] = [];
    for (; !isOver; rounds++) {
      const id = `raced-${rounds}`;
      const key = await make(started, id);
      keys.push([id, key]);
      await look(id, key, 200);
      if (rounds % 2 === 1) continue;
      t.match(await operate('DELETE', `/keys/${id}`), { status: 200, body: { inForce: true } });
      await look(id, key, 401);
    }
    await killer;
    for (const [index, [id, key]] of keys.entries()) await look(id, key, index % 2 === 1 ? 200 : 401);
    t.strictSame(wrong, []);
    t.ok(rounds > deaths, `${rounds} rounds`);
  });

  await t.test('a reload leaves the managed keys alone', async (t) => {
    const key = await make(started, 'through');
    gateway.kill('SIGHUP');
    await gateway.untilLogged(({ msg }) => msg === 'config reloaded');
    t.strictSame([...(await calls(key, 20))], [200]);
  });

  await t.test('the log tells what was done, and never a key', async (t) => {
    const key = await make(started, 'logged');
    await started.call(key);
    await operate('DELETE', '/keys/logged');
    for (const msg of ['key made', 'key revoked'])
      await gateway.untilLogged((entry) => entry.msg === msg && entry.key === 'logged');
    await gateway.untilLogged((entry) => entry.msg === 'key rotated' && entry.key === 'turned');
    await gateway.untilLogged((entry) => entry.msg === 'request' && entry.key === 'logged');
    t.notOk(gateway.logs.some((line) => line.includes(key) || /\bsk-[\w-]{40}/.test(line)));
  });
});

test('a gateway that is started anew on its store knows its keys', async (t) => {
  const store = embedded(t);
  const first = await startKeysGateway(t, { workers: 1, store });
  const [kept, gone] = [await make(first, 'kept'), await make(first, 'gone')];
  await first.operate('DELETE', '/keys/gone');
  await first.gateway.stop();
  const second = await startKeysGateway(t, { workers: 1, store });
  t.strictSame([...(await second.calls(kept, 10))], [200]);
  t.strictSame([...(await second.calls(gone, 10))], [401]);
  t.match((await second.operate('GET', '/keys')).body, {
    keys: [{ id: 'fixed', source: 'config' }, { source: 'managed' }, { source: 'managed' }],
  });
  t.match((await second.operate('GET', '/status')).body, { managedKeys: 1 });
  t.equal((await second.operate('DELETE', '/keys/fixed')).status, 409);
  t.equal(await second.call(configKey), 200);
});
