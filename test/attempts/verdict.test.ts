import { test } from 'tap';
import {
  type FailedAttempt,
  isOfUpstreamKey,
  provesNotExecuted,
  verdict,
} from '../../src/attempts/verdict.js';
import type { UpstreamFailureReason } from '../../src/errors.js';

const attempt = (change: Partial<FailedAttempt>): FailedAttempt => ({
  reason: 'reset',
  bytesSent: true,
  replayable: true,
  hasEffects: false,
  sentMs: 0,
  ...change,
});
const answered = ({
  status,
  ...change
}: Partial<FailedAttempt> & { readonly status: number }): FailedAttempt =>
  attempt({ reason: status, ...change });

type Verdict = ReturnType<typeof verdict>;
type Reason = UpstreamFailureReason | 'unusable_answer';

/** For each reason: nothing was sent; it was sent and can be sent again; it was sent and cannot. */
const rows: Readonly<Record<Reason, readonly [Verdict, Verdict, Verdict]>> = {
  connect_failed: ['next', 'next', 'stop'],
  connect_timeout: ['next', 'next', 'stop'],
  proxy_failed: ['next', 'next', 'stop'],
  tls_failed: ['next', 'next', 'stop'],
  queue_full: ['next', 'next', 'stop'],
  reset: ['next', 'next', 'stop'],
  first_byte_timeout: ['next', 'stop', 'stop'],
  idle_timeout: ['next', 'stop', 'stop'],
  total_timeout: ['stop', 'stop', 'stop'],
  malformed_answer: ['next', 'next', 'stop'],
  answer_too_large: ['next', 'stop', 'stop'],
  no_room: ['next', 'stop', 'stop'],
  truncated: ['next', 'next', 'stop'],
  closed: ['next', 'next', 'stop'],
  unusable_answer: ['next', 'next', 'stop'],
};
const reasons = Object.keys(rows) as Reason[];

test('every reason, sent and not, replayable and not', async (t) => {
  for (const reason of reasons) {
    const [unsent, sent, spent] = rows[reason];
    for (const mayRepeat of [true, false]) {
      for (const replayable of [true, false])
        t.equal(verdict(attempt({ reason, bytesSent: false, replayable }), true, mayRepeat), unsent, reason);
      t.equal(verdict(attempt({ reason }), true, mayRepeat), sent, reason);
      t.equal(verdict(attempt({ reason, replayable: false }), true, mayRepeat), spent, reason);
    }
  }
});

const upstreamsOwn = [401, 402, 403, 408, 409, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529];

test('an error that is the upstream’s own goes on, and one of the caller’s does not', async (t) => {
  for (let status = 400; status < 600; status++) {
    const due = upstreamsOwn.includes(status) ? 'next' : 'stop';
    for (const bytesSent of [true, false]) {
      t.equal(verdict(answered({ status, bytesSent }), true, true), due, `${status}`) || t.bailout();
      t.equal(verdict(answered({ status, bytesSent }), false, true), 'stop') || t.bailout();
    }
    t.equal(verdict(answered({ status, replayable: false }), true, true), 'stop') || t.bailout();
  }
});

test('the last target is asked again when it refused, or reset before anything was sent', async (t) => {
  for (const reason of reasons) {
    const isRefused = reason === 'connect_failed' || reason === 'proxy_failed';
    const due = isRefused || reason === 'reset' ? 'same' : 'stop';
    for (const replayable of [true, false]) {
      const unsent = attempt({ reason, bytesSent: false, replayable });
      t.equal(verdict(unsent, false, true), due, reason);
      t.equal(verdict(unsent, false, false), 'stop', reason);
      t.not(verdict(unsent, true, true), 'same', reason);
    }
    // Bytes went to a connection that was dead, and the one in its place was refused.
    t.equal(verdict(attempt({ reason }), false, true), isRefused ? 'same' : 'stop', reason);
    t.equal(verdict(attempt({ reason, replayable: false }), false, true), 'stop', reason);
  }
});

test('what broke more than a second after it was sent is sent nowhere again', async (t) => {
  for (const reason of reasons) {
    const [unsent, sent] = rows[reason];
    // An answer that is of no use is one all the same.
    const late = reason === 'unusable_answer' ? sent : 'stop';
    t.equal(verdict(attempt({ reason, sentMs: 999 }), true, true), sent, reason);
    for (const sentMs of [1000, 60_000]) {
      t.equal(verdict(attempt({ reason, sentMs }), true, true), late, reason);
      t.equal(verdict(attempt({ reason, sentMs }), false, true), 'stop', reason);
    }
    t.equal(verdict(attempt({ reason, bytesSent: false }), true, true), unsent, reason);
  }
  for (const status of upstreamsOwn)
    t.equal(verdict(answered({ status, sentMs: 60_000 }), true, true), 'next', `${status}`);
});

test('what may be done once only goes on where nothing was sent, or the answer proves that nothing was done', async (t) => {
  for (const reason of reasons) {
    const [unsent] = rows[reason];
    t.equal(verdict(attempt({ reason, hasEffects: true, bytesSent: false }), true, true), unsent, reason);
    for (const hasNext of [true, false])
      t.equal(verdict(attempt({ reason, hasEffects: true }), hasNext, true), 'stop', reason);
  }
  for (let status = 400; status < 600; status++) {
    const proof = [401, 402, 403, 429, 503, 529].includes(status);
    t.equal(
      verdict(answered({ status, hasEffects: true }), true, true),
      proof ? 'next' : 'stop',
      `${status}`,
    );
    const lateProof = proof && status < 500;
    t.equal(
      verdict(answered({ status, hasEffects: true, sentMs: 1000 }), true, true),
      lateProof ? 'next' : 'stop',
      `${status} late`,
    );
  }
  t.ok(provesNotExecuted(400, 60_000) && provesNotExecuted(404, 60_000) && provesNotExecuted(501, 60_000));
  for (const status of [408, 409, 500, 502, 504, 520, 524])
    t.notOk(provesNotExecuted(status, 0), `${status}`);
});

test('what another key may be spared', async (t) => {
  const ofKey = Array.from({ length: 500 }, (_none, i) => 100 + i).filter(isOfUpstreamKey);
  t.strictSame(ofKey, [401, 402, 403, 429]);
});
