import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { configWith, isReplaced, key, openStream, reload } from './reloading.js';
import { mostResets, startSteadyLoad } from './steady-load.js';

test('a gateway under load', async (t) => {
  const gateway = await startGateway(t, {
    workers: null,
    file: configWith({ workers: 2 }),
    env: { SIMULATOR_TOKENS_PER_SECOND: '5' },
  });

  await t.test('has its workers replaced by a reload, and fails no request', async (t) => {
    const before = gateway.workerPids();
    const stream = await openStream(gateway.port, false);
    const load = startSteadyLoad(gateway.port, key, 100);
    await reload(gateway, configWith({ workers: 2, limits: { headerBytes: 65_536 } }));
    await gateway.untilLogged(({ msg }) => msg === 'workers replaced');
    await load.stop();
    t.ok(isReplaced(gateway, before));
    t.strictSame(load.failures, []);
    t.ok(load.resets <= mostResets(2), `${load.resets} of ${load.answers} were reset`);
    t.ok(load.answers > 0);
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });

  await t.test('has as many workers as the config says after a reload', async (t) => {
    await reload(gateway, configWith({ workers: 3, limits: { headerBytes: 65_536 } }));
    await gateway.until(() => gateway.workerPids().length === 3);
    const [first = 0] = gateway.workerPids();
    const stream = await openStream(gateway.port, false);
    await reload(gateway, configWith({ workers: 1, limits: { headerBytes: 65_536 } }));
    await gateway.until(() => gateway.workerPids().length === 1);
    t.strictSame(gateway.workerPids(), [first]);
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });
});
