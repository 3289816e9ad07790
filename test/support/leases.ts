import type { Test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import type { Gateway, GatewayOptions } from '../../src/gateway.js';
import { HostClock } from '../../src/limits/clock.js';
import type { OwnerMessage } from '../../src/limits/lease-messages.js';
import { PoolOwner } from '../../src/limits/pool-owner.js';
import { findPool, poolSteps } from '../../src/limits/pools.js';
import { unsharedSource } from '../../src/limits/share-source.js';
import { atOnce } from '../../src/wire/steps.js';

/**
 * The limits of gateways in this process, owned as a primary owns those of its workers.
 * @param delayMs delay of each message
 */
export function ownLimits(t: Pick<Test, 'teardown'>, config: ResolvedConfig, delayMs = 0) {
  const pools = atOnce(poolSteps(config));
  const clock = new HostClock();
  const owner = new PoolOwner({
    now: () => clock.now(),
    poolOf: (name) => findPool(pools, name),
    shares: unsharedSource,
    sliceDivisor: () => 0,
  });
  const timer = setInterval(() => owner.tick(), 100);
  t.teardown(() => clearInterval(timer));
  let count = 0;
  return {
    owner,
    /** Makes a gateway that takes part in the limits. */
    join(make: (sendLease: GatewayOptions['sendLease']) => Gateway): Gateway {
      const id = ++count;
      // Messages between processes arrive later, and in order.
      const gateway = make((message) => void setTimeout(() => owner.receive(id, message), delayMs));
      const send = (message: OwnerMessage) => void setTimeout(() => gateway.receiveLease(message), delayMs);
      atOnce(owner.joinSteps(id, send));
      return gateway;
    },
  };
}
