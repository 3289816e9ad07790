import { test } from 'tap';
import { findingOfFailure, findingOfStatus } from '../../src/attempts/outcome.js';

test('what a status says about the target', async (t) => {
  const rows = {
    success: [200, 204, 302, 400, 405, 413, 415, 422],
    rejected: [401, 402],
    doubted: [403],
    failure: [500, 502, 503, 504, 520, 524, 529, 599],
    rateLimited: [429],
    uncounted: [404, 408, 409, 501, 505],
  };
  for (const [finding, statuses] of Object.entries(rows))
    for (const status of statuses) t.equal(findingOfStatus(status), finding, `${status}`);
});

test('what a missing answer says about it', async (t) => {
  for (const reason of [
    'connect_failed',
    'connect_timeout',
    'proxy_failed',
    'tls_failed',
    'reset',
    'first_byte_timeout',
    'idle_timeout',
    'malformed_answer',
    'truncated',
    'unusable_answer',
  ] as const)
    t.equal(findingOfFailure(reason, false), 'failure', reason);
  for (const reason of ['queue_full', 'no_room', 'closed', 'answer_too_large'] as const)
    t.equal(findingOfFailure(reason, true), 'uncounted', reason);
  t.equal(findingOfFailure('total_timeout', false), 'failure');
  t.equal(findingOfFailure('total_timeout', true), 'uncounted');
});
