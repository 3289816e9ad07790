import { copyFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { claimPort } from '../../src/supervisor/port.js';
import { createWorkerPool } from '../../src/supervisor/workers.js';
import { testConfig } from '../support/gateway.js';

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');

test('a worker that does not start with new settings leaves the one before it in its place', async (t) => {
  const tls = { cert: `${t.testdir()}/cert.pem`, key: `${fixtures}/localhost.key` };
  const read = (certificate: string) => {
    copyFileSync(`${fixtures}/${certificate}`, tls.cert);
    const config = testConfig({ upstreams: ['http://127.0.0.1:9/v1'], config: { listen: { tls } } });
    return parseConfig(JSON.stringify(config), { directory: '.', environment: {}, created: 1 });
  };
  let serving: readonly number[] = [];
  let look = (): void => {};
  const config = read('localhost.pem');
  process.env.LOG_LEVEL = 'silent';
  const pool = createWorkerPool({
    count: 1,
    host: '127.0.0.1',
    port: await claimPort('127.0.0.1', 0),
    headerBytes: config.limits.headerBytes,
    log: pino({ level: 'silent' }),
    onChange(pids) {
      serving = pids;
      look();
    },
    onStart() {},
    onGone() {},
    onNews() {},
    onFault(fault) {
      throw fault;
    },
    onGivenUp(reason) {
      t.fail(reason);
    },
  });
  t.teardown(() => pool.drain(1000, false));
  t.equal(await pool.apply(config, null, 1), null);
  await new Promise<void>((done) => {
    look = () => {
      if (serving.length === 1) done();
    };
    look();
  });
  const [first] = serving;

  const renewed = read('expired.pem');
  rmSync(tls.cert);
  t.match(
    await pool.apply(renewed, null, 1),
    /^a worker with the new settings does not start \(.+\), those before it serve on$/,
  );
  t.strictSame(serving, [first]);

  t.equal(await pool.apply(read('expired.pem'), null, 1), null, 'the same settings are tried again');
  t.equal(serving.length, 1);
  t.not(serving[0], first);
});
