import { pino } from 'pino';
import { test } from 'tap';
import { demoConfig } from '../../src/config/demo.js';
import type { AdminSettings, ResolvedConfig } from '../../src/config/resolve.js';
import { createReloader } from '../../src/supervisor/reload.js';

test('a reload waits for two checks at most, however many are asked for', async (t) => {
  const config = demoConfig(0);
  let last: Promise<unknown> = Promise.resolve();
  let reads = 0;
  /** One after another, as files are read. */
  const read = (): Promise<ResolvedConfig> => {
    const reading = last.then(async () => {
      await new Promise(setImmediate);
      reads += 1;
      return config;
    });
    last = reading;
    return reading;
  };
  let readsBefore = 0;
  const apply = async (): Promise<null> => {
    readsBefore = reads;
    return null;
  };
  const reloader = createReloader({ config, read, apply, log: pino({ level: 'silent' }) });
  const checks = Array.from({ length: 200 }, () => reloader.check());
  t.strictSame(await reloader.reload(), { status: 'reloaded', problems: [] });
  t.ok(readsBefore <= 3, `${readsBefore} reads`);
  for (const problems of await Promise.all(checks)) t.strictSame(problems, []);
  t.equal(reads, 3);
});

test('a check that is asked for during another one reads the file as it is then', async (t) => {
  const config = demoConfig(0);
  let isGood = false;
  const read = async (): Promise<ResolvedConfig> => {
    const was = isGood;
    await new Promise(setImmediate);
    if (!was) throw new Error('bad');
    return config;
  };
  const reloader = createReloader({ config, read, apply: async () => null, log: pino({ level: 'silent' }) });
  const first = reloader.check();
  isGood = true;
  t.strictSame(await Promise.all([first, reloader.check(), reloader.check()]), [['bad'], [], []]);
});

test('a config that some workers could not take over is told apart from one that is refused', async (t) => {
  const config = demoConfig(0);
  let apply = async (): Promise<string | null> => 'a worker hangs';
  const log = pino({ level: 'silent' });
  const reloader = createReloader({ config, read: () => config, apply: () => apply(), log });
  t.strictSame(await reloader.reload(), { status: 'partly reloaded', problems: ['a worker hangs'] });
  t.equal(reloader.generation, 2, 'it is in force');
  apply = () => Promise.reject(new Error('none can'));
  t.strictSame(await reloader.reload(), { status: 'refused', problems: ['none can'] });
  t.equal(reloader.generation, 2, 'the one before is in force');
});

test('the listener of operators stays where it is, with the new tokens, and each reload says so', async (t) => {
  const tokens = { readToken: null, keyToken: null };
  const admin = { host: '127.0.0.1', port: 9001, token: 'old', ...tokens } as unknown as AdminSettings;
  const moved = { ...admin, port: 9002, token: 'new' } as unknown as AdminSettings;
  const config = demoConfig(0);
  const lines: string[] = [];
  const begin = (first: AdminSettings | null, next: AdminSettings | null) =>
    createReloader({
      config: { ...config, admin: first },
      read: () => ({ ...config, admin: next }),
      apply: async () => null,
      log: pino({}, { write: (line) => void lines.push(line) }),
    });
  const reloader = begin(admin, moved);
  for (const round of [1, 2]) {
    await reloader.reload();
    t.strictSame(reloader.running.admin, { ...moved, port: 9001 }, `${round}`);
    t.match(lines.pop(), '"settings":["admin"]');
  }
  const without = begin(null, moved);
  await without.reload();
  t.equal(without.running.admin, null, 'there is none before the restart');
  t.match(lines.pop(), '"settings":["admin"]');
});
