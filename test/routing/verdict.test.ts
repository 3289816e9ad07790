import { test } from 'tap';
import { type Attempt, verdict } from '../../src/routing/verdict.js';

const attempt = (change: Partial<Attempt>): Attempt => ({
  reason: 'reset',
  bytesSent: true,
  headRelayed: false,
  replayable: true,
  ...change,
});

test('nothing is tried again once something was relayed', async (t) => {
  t.equal(verdict(attempt({ headRelayed: true, bytesSent: false })), 'stop');
});

test('a request that was not sent goes to the next candidate', async (t) => {
  for (const reason of ['connect_failed', 'connect_timeout', 'tls_failed', 'queue_full'] as const)
    t.equal(verdict(attempt({ reason, bytesSent: false, replayable: false })), 'next');
  t.equal(verdict(attempt({ reason: 'total_timeout', bytesSent: false })), 'stop');
});

test('a request that was sent goes on only when the upstream gave up', async (t) => {
  for (const reason of ['reset', 'malformed_answer', 'truncated', 'unusable_answer'] as const)
    t.equal(verdict(attempt({ reason })), 'next');
  for (const reason of ['first_byte_timeout', 'idle_timeout', 'total_timeout'] as const)
    t.equal(verdict(attempt({ reason })), 'stop');
  t.equal(verdict(attempt({ replayable: false })), 'stop');
});
