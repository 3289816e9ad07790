import { test } from 'tap';
import type { Key, Model } from '../../../src/config/types.js';
import type { Call } from '../../../src/flow/call.js';
import { CallLimits } from '../../../src/flow/limits/call-limits.js';
import type { LeaseHolder } from '../../../src/limits/lease-holder.js';
import type { Pool } from '../../../src/limits/pool.js';
import { poolsOfKey } from '../../../src/limits/pools.js';

test('an admitted call is told what was told a moment ago, a refused one what is left now', (t) => {
  const limits = { requestsPerMinute: 10_000, tokensPerMinute: null, concurrent: null };
  const key = { id: 'a', limits, groupLimits: [] } as unknown as Key;
  const model = { name: 'm', limits: null } as unknown as Model;
  let remaining = 9000;
  const peek = ({ limit }: Pool) => ({ limit, remaining, resetMs: 0 });
  const holder = { ticks: 1, peek } as unknown as LeaseHolder;
  const call = {
    errorFormat: { rateHeaders: 'chat' },
    running: { snapshot: { vendors: { vendorc: [] } } },
  } as unknown as Call;
  const remainingToldTo = (isAdmitted: boolean) => {
    const limits = new CallLimits(holder, poolsOfKey(key).forModel(model).rateLines);
    limits.isAdmitted = isAdmitted;
    return /remaining-requests: (\d+)/.exec(limits.lines(call))?.[1];
  };
  t.equal(remainingToldTo(true), '9000');
  t.equal(remainingToldTo(true), '9000');
  remaining = 8000;
  t.equal(remainingToldTo(true), '9000');
  remaining = 0;
  t.equal(remainingToldTo(false), '0');
  t.equal(remainingToldTo(true), '0', 'and so are those after it');
  t.end();
});
