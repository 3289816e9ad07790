import { copyFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import {
  configWith,
  countLogged,
  isReplaced,
  openStream,
  openTls,
  reload,
  untilClosed,
} from './reloading.js';

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');

/** Serial number of the certificate that a new connection is shown. */
async function serialOf(port: number): Promise<string> {
  const socket = await openTls(port);
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test('a renewed certificate', async (t) => {
  const folder = t.testdir();
  const tls = { cert: `${folder}/cert.pem`, key: `${folder}/key.pem` };
  copyFileSync(`${fixtures}/localhost.pem`, tls.cert);
  copyFileSync(`${fixtures}/localhost.key`, tls.key);
  const config = configWith({ listen: { tls } });
  const gateway = await startGateway(t, {
    workers: 2,
    file: config,
    env: { SIMULATOR_TOKENS_PER_SECOND: '5' },
  });
  t.equal(await serialOf(gateway.port), '02');

  await t.test('is shown to new connections after a reload, and streams under way are whole', async (t) => {
    const before = gateway.workerPids();
    const stream = await openStream(gateway.port, true);
    copyFileSync(`${fixtures}/expired.pem`, tls.cert);
    await reload(gateway, config);
    await gateway.until(() => isReplaced(gateway, before));
    await untilClosed(gateway, before);
    for (let shown = 0; shown < 8; shown += 1) t.equal(await serialOf(gateway.port), '03');
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });

  await t.test('replaces no worker when it is the same as before', async (t) => {
    await gateway.untilLogged(({ msg }) => msg === 'workers replaced');
    const before = gateway.workerPids();
    await reload(gateway, config);
    await gateway.until(() => countLogged(gateway, '"config reloaded"') === 2);
    t.strictSame(gateway.workerPids(), before);
  });

  await t.test('is refused when the key is not its own, with the reason', async (t) => {
    const before = gateway.workerPids();
    copyFileSync(`${fixtures}/ca.key`, tls.key);
    await reload(gateway, config);
    const refused = await gateway.untilLogged(({ msg }) => `${msg}`.startsWith('reload refused'));
    t.match(refused.reasons, [
      /^listen\.tls: the certificate and the key .*: the key is that of another certificate$/,
    ]);
    t.strictSame(gateway.workerPids(), before);
    t.equal(await serialOf(gateway.port), '03');
  });
});
