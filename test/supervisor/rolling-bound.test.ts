import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { configWith, countLogged, openStream, reload, untilClosed } from './reloading.js';

/** Workers of one place that may drain at a time. */
const mostDraining = 4;

test('of the workers that drain in one place the oldest is cut when there are too many', async (t) => {
  const gateway = await startGateway(t, {
    workers: 1,
    file: configWith({}),
    env: { SIMULATOR_TOKENS_PER_SECOND: '1' },
  });
  t.teardown(() => gateway.end());
  /** Opens a stream that ends only when it is cut. */
  const longStream = async () => {
    const { text } = await openStream(gateway.port, false, 'word '.repeat(1000));
    const end = text.then(
      () => 'whole',
      () => 'cut',
    );
    return { end };
  };
  const first = await longStream();
  const isCut = () => countLogged(gateway, 'ending the oldest') > 0;
  let rounds = 0;
  for (; !isCut() && rounds < 4 * mostDraining; rounds += 1) {
    const before = gateway.workerPids();
    await longStream();
    await reload(gateway, configWith({ limits: { headerBytes: 65_536 + rounds } }));
    await gateway.until(() => countLogged(gateway, '"workers replaced"') === rounds + 1);
    await untilClosed(gateway, before);
  }
  t.ok(rounds > mostDraining);
  t.ok(isCut());
  t.equal(await first.end, 'cut');
  gateway.kill('SIGTERM');
  await gateway.untilLogged(({ msg }) => msg === 'draining');
  gateway.kill('SIGTERM');
  await gateway.exited;
});
