import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { demoConfig } from '../../src/config/demo.js';
import { createManagedKeySet, type ManagedKeySet } from '../../src/keys/key-set.js';
import { fromWire } from '../../src/keys/key-wire.js';
import { hashKey } from '../../src/keys/secret.js';
import { createManagedKeys } from '../../src/supervisor/managed-keys.js';
import type { WorkerOrder } from '../../src/supervisor/messages.js';
import { type FakeCall, fakeData, fakeStore, lost, refused } from '../keys/fake-store.js';
import { plainInput } from '../keys/samples.js';
import { eventually } from '../support/eventually.js';

/** A worker that takes its orders at once, unless it is stuck. */
class FakeWorker extends EventEmitter {
  readonly connected = true;
  readonly pid = 1;
  readonly set: ManagedKeySet = createManagedKeySet();
  isStuck = false;
  orders = 0;

  send(order: WorkerOrder, onSent?: () => void): boolean {
    if (this.isStuck) return true;
    this.orders++;
    if (onSent !== undefined) setImmediate(onSent);
    if (order.type === 'keys') this.set.apply(fromWire(order.keys));
    return true;
  }
}

const sha256 = (key: string) => hashKey(key).slice('sha256:'.length);

/** The keys of a gateway with two workers, and what is logged. */
function make(t: Test, data = fakeData(), before: (call: FakeCall) => void = () => {}, taskDays: number = 1) {
  const lines: Record<string, unknown>[] = [];
  const workers = [new FakeWorker(), new FakeWorker()];
  const knows = (key: string) => workers.map(({ set }) => set.find(sha256(key)) !== null);
  /** Ids of keys of which the primary heard before its workers. */
  const early: string[] = [];
  const demo = demoConfig(1);
  const config = { ...demo, store: { kind: 'embedded', path: t.testdir(), taskDays } as const };
  const keys = createManagedKeys({
    store: { ...fakeStore({ data, before }), changes: null },
    config: () => config,
    tellAll(order) {
      for (const worker of workers) worker.send(order);
    },
    async confirm() {
      await new Promise((resolve) => setImmediate(resolve));
      return workers.filter(({ isStuck }) => isStuck) as unknown as readonly ChildProcess[];
    },
    onChange(change) {
      for (const { id, hash } of change.put)
        if (workers.every(({ set }) => set.find(hash) === null)) early.push(id);
    },
    log: pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) }),
  });
  t.teardown(() => keys.stop());
  return { keys, workers, lines, data, knows, early };
}

test('what an operator changes is in force on every worker before the answer', async (t) => {
  const { keys, knows, lines, early } = make(t);
  await keys.looked();
  t.equal(keys.count(), 0);
  const made = await keys.desk.create({ ...plainInput, id: 'team' });
  t.equal(made.inForce, true);
  const { key } = made.outcome;
  t.strictSame(knows(key), [true, true]);
  t.strictSame(early, ['team']);
  t.equal(keys.count(), 1);
  const rotated = await keys.desk.rotate('team', 60_000, null);
  t.strictSame([...knows(key), ...knows(rotated.outcome.key)], [true, true, true, true]);
  t.match(await keys.desk.update('team', { label: 'x' }, null), {
    inForce: true,
    outcome: { record: { label: 'x' } },
  });
  t.equal((await keys.desk.revoke('team')).inForce, true);
  t.strictSame([...knows(key), ...knows(rotated.outcome.key)], [false, false, false, false]);
  t.same(
    lines.map(({ key, msg }) => `${key} ${msg}`),
    ['team key made', 'team key rotated', 'team key changed', 'team key revoked'],
  );
  t.notOk(JSON.stringify(lines).includes('sk-'));
});

test('an id of the config file is taken', async (t) => {
  const { keys } = make(t);
  await refused(t, keys.desk.create({ ...plainInput, id: 'demo' }), { kind: 'conflict', param: 'id' });
});

test('the id of a revoked key stays taken while its video tasks may be kept', async (t) => {
  const data = fakeData();
  const { keys } = make(t, data, () => {}, 365);
  await keys.looked();
  await keys.desk.create({ ...plainInput, id: 'team' });
  await keys.desk.revoke('team');
  const keptMs = (data.collections.get('managed-keys')?.get('team')?.expiresAt ?? 0) - Date.now();
  t.ok(keptMs > 364 * 24 * 60 * 60 * 1000);
});

test('what others change in the store reaches the workers by itself', async (t) => {
  const { keys, workers, data } = make(t);
  const other = make(t, data);
  await Promise.all([keys.looked(), other.keys.looked()]);
  const { outcome } = await other.keys.desk.create(plainInput);
  const hash = sha256(outcome.key);
  await eventually(() => workers.every(({ set }) => set.find(hash) !== null));
  await other.keys.desk.revoke(outcome.record.id);
  await eventually(() => workers.every(({ set }) => set.find(hash) === null));
  t.pass();
});

test('a worker that starts is told all keys', async (t) => {
  const { keys } = make(t);
  await keys.looked();
  const { outcome } = await keys.desk.create(plainInput);
  const late = new FakeWorker();
  await keys.greet(late as unknown as ChildProcess);
  t.ok(late.set.find(sha256(outcome.key)));
  t.equal(late.set.isComplete, true);
});

test('a worker that starts is told many keys part by part, and of none that was revoked meanwhile', async (t) => {
  const { keys, workers } = make(t);
  await keys.looked();
  const made = await Promise.all(Array.from({ length: 300 }, () => keys.desk.create(plainInput)));
  const late = new FakeWorker();
  workers.push(late);
  let isTold = false;
  const greeted = keys.greet(late as unknown as ChildProcess).then(() => {
    isTold = true;
  });
  const last = made.at(-1)?.outcome;
  await keys.desk.revoke(last?.record.id ?? '');
  t.notOk(isTold, 'the key was revoked while others were told');
  await greeted;
  t.ok(late.orders > 3);
  t.equal(late.set.size, 299);
  t.equal(late.set.find(sha256(last?.key ?? '')), null);
});

test('a worker that is stuck is told of to the operator', async (t) => {
  const { keys, workers, lines } = make(t);
  await keys.looked();
  const [first] = workers;
  if (first === undefined) throw new Error('there is no worker');
  first.isStuck = true;
  t.equal((await keys.desk.create({ ...plainInput, id: 'a' })).inForce, false);
  t.match(lines.at(-1), { level: 40, workers: [1], seen: true });
  workers.shift();
  t.equal((await keys.desk.revoke('a')).inForce, true);
});

test('a store that cannot be reached holds nothing up, and its keys come when it does', async (t) => {
  let isLost = true;
  const data = fakeData();
  const { outcome } = await make(t, data).keys.desk.create(plainInput);
  const { keys, lines, knows, workers } = make(t, data, () => {
    if (isLost) throw lost();
  });
  await keys.looked();
  t.strictSame(
    workers.map(({ set }) => set.isComplete),
    [false, false],
  );
  const late = new FakeWorker();
  await keys.greet(late as unknown as ChildProcess);
  t.equal(late.set.isComplete, false);
  await refused(t, keys.desk.create(plainInput), { kind: 'store_unavailable' });
  isLost = false;
  await eventually(() => !knows(outcome.key).includes(false));
  t.strictSame(
    lines.map(({ level, msg }) => `${level} ${msg}`),
    [
      '40 cannot read the keys in the store: the known keys stay in effect',
      '30 keys in the store are readable again',
    ],
  );
});

test('a record that is damaged or of a later version is told of, and is no key', async (t) => {
  const data = fakeData();
  await fakeStore({ data }).create('managed-keys', 'broken', '{', 60_000);
  await fakeStore({ data }).create('managed-keys', 'later', '{"version":2,"id":"later"}', 60_000);
  const { keys, lines } = make(t, data);
  await keys.looked();
  t.equal(keys.count(), 0);
  t.match(lines, [
    { level: 50, keys: ['broken', 'later'], msg: /damaged, or of a later version of the gateway/ },
  ]);
});
