import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { uptime } from 'node:os';
import { test } from 'tap';
import { hasEnded, maxSkewMs, thisProcess } from '../../src/store/process-mark.js';

test('a process is known by more than its number', async (t) => {
  const own = thisProcess();
  const now = Date.now();
  t.equal(hasEnded(own, now), false);
  t.equal(hasEnded({ ...own, started: '1' }, now), true, 'its number was given again');
  t.equal(hasEnded({ ...own, host: 'elsewhere' }, now), null);
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  t.equal(hasEnded({ ...own, process: child.pid ?? 0 }, now), true);
});

test('another boot is an earlier one of this machine if it wrote nothing since, or of another of the same name', (t) => {
  const other = { ...thisProcess(), boot: 'another' };
  const bootedAt = Date.now() - uptime() * 1000;
  t.equal(hasEnded(other, bootedAt - 2 * maxSkewMs), true);
  t.equal(hasEnded(other, bootedAt + 1000), null);
  t.equal(hasEnded(other, bootedAt - maxSkewMs / 2), null, 'the clocks of machines differ');
  t.end();
});
