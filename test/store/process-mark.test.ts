import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'tap';
import { hasEnded, thisProcess } from '../../src/store/process-mark.js';

test('a process is known by more than its number', async (t) => {
  const own = thisProcess();
  t.equal(hasEnded(own), false);
  t.equal(hasEnded({ ...own, started: '1' }), true, 'its number was given again');
  t.equal(hasEnded({ ...own, boot: 'before' }), true, 'the machine was started anew');
  t.equal(hasEnded({ ...own, host: 'elsewhere' }), null);
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  t.equal(hasEnded({ ...own, process: child.pid ?? 0 }), true);
});
