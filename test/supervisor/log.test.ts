import { execFileSync } from 'node:child_process';
import { test } from 'tap';

const url = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** The lines of a log that was told of two errors: one of a store, and a mistake of ours. */
function logged(): readonly object[] {
  const script = `
    const { createLog } = await import(${url('supervisor/log.js')});
    const { storeUnavailable } = await import(${url('store/unavailable.js')});
    const { logger } = createLog('worker', 'info');
    logger.warn({ err: storeUnavailable(new Error('there is no room in /data')) }, 'usage waits');
    logger.error({ err: new TypeError('not a number') }, 'a fault of ours');
  `;
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
}

test('a store that is gone is told by its reason alone, a mistake of ours with its stack', (t) => {
  const [gone, mistake] = logged() as [{ err: object }, { err: object }];
  t.strictSame(gone.err, { type: 'store_unavailable', message: 'there is no room in /data' });
  t.match(mistake.err, { type: 'TypeError', message: 'not a number', stack: /log|eval/ });
  t.end();
});
