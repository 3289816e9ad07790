import type { ChildProcess } from 'node:child_process';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import type { OwnerMessage } from '../../src/limits/lease-messages.js';
import { createLeases } from '../../src/supervisor/leases.js';
import { eventually } from '../support/eventually.js';
import { configWith } from './reloading.js';

/** Limits of 4,000 keys, the names of which a worker is told when they change. */
function withLimits(requestsPerMinute: number) {
  const keys = Array.from({ length: 4000 }, (_, index) => ({
    id: `k${index}`,
    hash: `sha256:${index.toString(16).padStart(64, '0')}`,
    groups: ['all'],
    limits: { requestsPerMinute },
  }));
  const text = JSON.stringify(configWith({ keys, groups: { all: { models: ['*'] } } }));
  return parseConfig(text, { directory: '.', environment: {}, created: 1 });
}

/** Limits with two workers, whose confirmations are up to the test. */
async function start(t: Test) {
  const told = [0, 0];
  const children = told.map((_, index) => {
    const send = ({ leases }: OwnerMessage): void => {
      told[index] = (told[index] ?? 0) + (leases?.length ?? 0);
    };
    return { connected: true, exitCode: null, signalCode: null, send } as unknown as ChildProcess;
  });
  const waits: { except: ReadonlySet<ChildProcess>; confirm(missing: readonly ChildProcess[]): void }[] = [];
  const config = withLimits(1000);
  const leases = createLeases({
    config,
    store: { accounts: null, create: () => Promise.resolve(true) } as never,
    confirm: (_, except) =>
      new Promise((resolve) => {
        waits.push({ except: new Set(except), confirm: resolve });
      }),
    onFault(_where, fault) {
      throw fault;
    },
    log: pino({ level: 'silent' }),
  });
  t.teardown(() => leases.stop());
  await leases.apply(config, children.length);
  for (const child of children) await leases.onStart(child);
  return { leases, told, children, waits };
}

test('a worker is sent few changed limits ahead of what it has read, which it would read in one turn', async (t) => {
  const { leases, told, waits } = await start(t);
  const applied = leases.apply(withLimits(2000), 2);
  await eventually(() => waits.length > 0);
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(told, [1024, 1024]);
  for (let round = 0; round < 3; round++) {
    waits[round]?.confirm([]);
    await eventually(() => waits.length > round + 1 || told[0] === 4000);
  }
  await applied;
  t.strictSame(told, [4000, 4000]);
});

test('a worker that is stuck delays the limits of the others once', async (t) => {
  const { leases, told, children, waits } = await start(t);
  const applied = leases.apply(withLimits(2000), 2);
  const [stuck] = children;
  if (stuck === undefined) throw new Error('there is no worker');
  await eventually(() => waits.length === 1);
  waits[0]?.confirm([stuck]);
  for (let round = 1; round < 3; round++) {
    await eventually(() => waits.length > round);
    t.strictSame([...(waits[round]?.except ?? [])], [stuck]);
    waits[round]?.confirm([]);
  }
  await applied;
  t.strictSame(told, [4000, 4000]);
});
