import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { testConfig } from '../suites/gateway.js';

function unenforced(change: Record<string, unknown>): readonly string[] {
  const config = testConfig({ upstreams: ['http://127.0.0.1:1/v1'], config: change });
  return parseConfig(JSON.stringify(config), { directory: '.', environment: {}, created: 1 }).unenforced;
}

test('settings that do nothing yet are told by their path', async (t) => {
  t.same(
    unenforced({
      models: { m: { protocols: ['chat'], targets: [{ upstream: 'u0' }], hedgeMs: 100 } },
      routing: { failures: 1 },
    }),
    ['models.m.hedgeMs'],
  );
  t.same(unenforced({}), []);
});
