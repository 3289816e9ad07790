import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { testConfig } from '../suites/gateway.js';

function unenforced(change: Record<string, unknown>): readonly string[] {
  const config = testConfig({ upstreams: ['http://127.0.0.1:1/v1'], config: change });
  return parseConfig(JSON.stringify(config), { directory: '.', environment: {}, created: 1 }).unenforced;
}

test('settings that do nothing yet are told by their path', async (t) => {
  const [key] = testConfig({ upstreams: [] }).keys as Record<string, unknown>[];
  t.same(
    unenforced({
      store: { kind: 'embedded' },
      keys: [{ ...key, limits: { concurrent: 1 }, budget: { usd: 1, per: 'day' }, mayRoute: true }],
      groups: { default: { models: ['*'], limits: { concurrent: 1 } } },
      routing: { failures: 1 },
    }),
    ['keys[0].budget'],
  );
  t.same(unenforced({}), []);
});
