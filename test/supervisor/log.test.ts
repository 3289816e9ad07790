import { execFileSync } from 'node:child_process';
import { test } from 'tap';

const url = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** The lines of a log that a script writes. @param body of the script, with `logger` and `gone`, the error of a store */
function logged(body: string): readonly { readonly err: object }[] {
  const script = `
    const { createLog } = await import(${url('supervisor/log.js')});
    const { storeUnavailable: gone } = await import(${url('store/store.js')});
    const { logger } = createLog('worker', 'info');
    ${body}
  `;
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { err: object });
}

test('a store that is gone is told by its reason alone, a mistake of ours with its stack', (t) => {
  const [gone, mistake] = logged(`
    logger.warn({ err: gone(new Error('there is no room in /data')) }, 'usage waits');
    logger.error({ err: new TypeError('not a number') }, 'internal error');
  `);
  t.strictSame(gone?.err, { type: 'store_unavailable', message: 'there is no room in /data' });
  t.match(mistake?.err, { type: 'TypeError', message: 'not a number', stack: /log|eval/ });
  t.end();
});

test('the reason for a store that is gone is never empty, of one line and bounded', (t) => {
  const refused = (address: string) => `new Error('connect ECONNREFUSED ${address}:5432')`;
  const cases: [string, string][] = [
    // What Node's sockets fail with where a name has addresses of both families.
    [
      `Object.assign(new AggregateError([${refused('::1')}, ${refused('127.0.0.1')}, ${refused('127.0.0.2')}]),
        { code: 'ECONNREFUSED' })`,
      'connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432',
    ],
    [`Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })`, 'ECONNREFUSED'],
    [`Object.assign(new Error(''), { code: 'EPIPE' })`, 'EPIPE'],
    [`new Error('')`, 'Error'],
    [`new Error('', { cause: new Error('no room') })`, 'no room'],
    [`new Error('no connection', { cause: new Error('reset') })`, 'no connection: reset'],
    [`gone(new Error('no room'))`, 'no room'],
    [`gone(gone('no room'))`, 'no room'],
    [`'no\\n  room'`, 'no room'],
    [`new Error('x'.repeat(5000))`, 'x'.repeat(500)],
    [`const again = new Error('round'); again.cause = again; again`, 'round'],
  ];
  const lines = logged(
    cases.map(([cause]) => `logger.warn({ err: gone(eval(${JSON.stringify(cause)})) })`).join('\n'),
  );
  for (const [at, [cause, message]] of cases.entries())
    t.strictSame(lines[at]?.err, { type: 'store_unavailable', message }, cause);
  const [none] = logged('logger.warn({ err: gone(undefined) })');
  t.match(none?.err, { type: 'store_unavailable', message: /\w/ });
  t.end();
});
