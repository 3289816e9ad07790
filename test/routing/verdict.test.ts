import { test } from 'tap';
import type { UpstreamFailureReason } from '../../src/errors.js';
import {
  type AnsweredAttempt,
  type BrokenAttempt,
  type Verdict,
  verdict,
} from '../../src/routing/verdict.js';

const attempt = (change: Partial<BrokenAttempt>): BrokenAttempt => ({
  reason: 'reset',
  bytesSent: true,
  headRelayed: false,
  replayable: true,
  ...change,
});
const answered = (change: Partial<AnsweredAttempt>): AnsweredAttempt => ({
  reason: 'error_answer',
  status: 500,
  bytesSent: true,
  headRelayed: false,
  replayable: true,
  ...change,
});

type Reason = UpstreamFailureReason | 'unusable_answer';

/** For each reason: nothing was sent; it was sent and can be sent again; it was sent and cannot. */
const rows: Readonly<Record<Reason, readonly [Verdict, Verdict, Verdict]>> = {
  connect_failed: ['next', 'next', 'stop'],
  connect_timeout: ['next', 'next', 'stop'],
  tls_failed: ['next', 'next', 'stop'],
  queue_full: ['next', 'next', 'stop'],
  reset: ['next', 'next', 'stop'],
  first_byte_timeout: ['next', 'stop', 'stop'],
  idle_timeout: ['next', 'stop', 'stop'],
  total_timeout: ['stop', 'stop', 'stop'],
  malformed_answer: ['next', 'next', 'stop'],
  answer_too_large: ['next', 'stop', 'stop'],
  truncated: ['next', 'next', 'stop'],
  closed: ['next', 'next', 'stop'],
  unusable_answer: ['next', 'next', 'stop'],
};
const reasons = Object.keys(rows) as Reason[];

test('every reason, sent and not, replayable and not', async (t) => {
  for (const reason of reasons) {
    const [unsent, sent, spent] = rows[reason];
    for (const others of [undefined, true]) {
      for (const replayable of [true, false])
        t.equal(verdict(attempt({ reason, bytesSent: false, replayable, others })), unsent, reason);
      t.equal(verdict(attempt({ reason, others })), sent, reason);
      t.equal(verdict(attempt({ reason, replayable: false, others })), spent, reason);
    }
  }
});

test('nothing is tried again once something was relayed', async (t) => {
  for (const bytesSent of [true, false]) {
    for (const others of [undefined, true, false]) {
      const relayed = { headRelayed: true, bytesSent, others };
      for (const reason of reasons) t.equal(verdict(attempt({ reason, ...relayed })), 'stop', reason);
      t.equal(verdict(answered(relayed)), 'stop');
    }
  }
});

const upstreamsOwn = [401, 402, 403, 408, 409, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529];

test('an error that is the upstream’s own goes on, and one of the caller’s does not', async (t) => {
  for (let status = 400; status < 600; status++) {
    const due = upstreamsOwn.includes(status) ? 'next' : 'stop';
    for (const others of [undefined, true]) {
      for (const bytesSent of [true, false])
        t.equal(verdict(answered({ status, others, bytesSent })), due, `${status}`) || t.bailout();
      t.equal(verdict(answered({ status, others, replayable: false })), 'stop') || t.bailout();
    }
    for (const bytesSent of [true, false])
      t.equal(verdict(answered({ status, others: false, bytesSent })), 'stop') || t.bailout();
  }
});

test('the only target is asked once more when nothing was sent and it refused or reset', async (t) => {
  for (const reason of reasons) {
    const due = reason === 'connect_failed' || reason === 'reset' ? 'same' : 'stop';
    const unsent = { reason, bytesSent: false, others: false };
    for (const replayable of [true, false]) t.equal(verdict(attempt({ ...unsent, replayable })), due, reason);
    t.equal(verdict(attempt({ ...unsent, repeated: true })), 'stop', reason);
    t.equal(verdict(attempt({ ...unsent, bytesSent: true })), 'stop', reason);
    t.not(verdict(attempt({ ...unsent, others: true })), 'same', reason);
  }
});
